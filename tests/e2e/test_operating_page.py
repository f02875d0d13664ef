"""docs/operating.md, done as it says on a machine with systemd and nginx: the service, the login in front of it, a
backup, an erasure after it, the restoring, and an update that brings nothing new. Its container file is not built here.
"""

from pathlib import Path

import pytest
from machine import require_machine, run_session
from pages import blocks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("newcomer")]

ENVIRONMENT, COMMAND = blocks("operating.md", "sh")
(UNIT,), (PROXY,) = blocks("operating.md", "ini"), blocks("operating.md", "nginx")
BACKUP, RESTORE, UPDATE = (block.replace("$ ", "") for block in blocks("operating.md", "console")[1:])

SESSION = f"""#!/bin/bash
set -eux -o pipefail
say() {{ set +x; echo "== $*"; set -x; }}
answers() {{
    /opt/gongqing/.venv/bin/python /out/ask.py "$@" || (journalctl -u gongqing -o cat --no-pager; false) >&2
}}
printed() {{  # the address of this start: it is printed once the port answers, and reaches the journal after that
    local start="_SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID gongqing)"
    until journalctl "$start" -o cat --no-pager | grep -o 'http[^ ]*token[^ ]*'; do sleep 0.2; done
}}

useradd --system gongqing
install -d -o gongqing -m 700 /srv/gongqing
install -d -m 700 /backup
install -m 600 /out/gongqing.env /etc/gongqing.env
install -m 755 /out/gongqing /usr/local/bin/gongqing
install -m 644 /out/gongqing.service /etc/systemd/system/gongqing.service
cd /opt/gongqing
gongqing import mapped samples/posts.jsonl --mapping samples/posts.toml --as sample
gongqing refresh
systemd-analyze verify gongqing.service
systemctl daemon-reload

systemctl enable --now gongqing
say without a token $(answers http://127.0.0.1:3000/server_info)
say its user $(stat -c %U "/proc/$(systemctl show -P MainPID gongqing)")
address=$(printed)
say with its token $(answers "$address")
systemctl kill -s KILL --kill-whom=main gongqing
sleep 12
say after a kill $(answers http://127.0.0.1:3000/server_info), restarts $(systemctl show -P NRestarts gongqing)

install -d /etc/systemd/system/gongqing.service.d
printf '[Service]\\nExecStart=\\nExecStart=/opt/gongqing/.venv/bin/gongqing ui --behind https://data.example\\n' \\
    > /etc/systemd/system/gongqing.service.d/behind.conf
openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=data.example -keyout /etc/ssl/data.example.key \\
    -out /etc/ssl/data.example.pem 2> /dev/null
echo "ward:$(openssl passwd -apr1 word)" > /etc/nginx/gongqing.users
install -m 644 /out/proxy.conf /etc/nginx/conf.d/gongqing.conf
echo '127.0.0.1 data.example' >> /etc/hosts
systemctl daemon-reload
systemctl restart gongqing
nginx
answers http://127.0.0.1:3000/server_info
address=$(printed)
case $address in https://data.example/*) ;; *) false ;; esac
say no login $(answers "$address")
say a login, no token $(answers https://data.example/server_info ward:word)
say a login and its token $(answers "$address" ward:word)
nginx -s stop

{BACKUP}
gongqing erase sample:p012
say erased $(gongqing show clean_posts --id sample:p012 --json)
rm -rf /srv/gongqing/data  # what was lost
{RESTORE}
say restored, erased $(gongqing show clean_posts --id sample:p012 --json)
say restored, another [$(gongqing show clean_posts --id sample:p013 --json | grep -c sample:p013.,)]
say up again $(answers http://127.0.0.1:3000/server_info)

git clone -q --bare /opt/gongqing /srv/origin.git
git -C /opt/gongqing remote set-url origin /srv/origin.git
chown -R gongqing /opt/gongqing/.git /srv/origin.git
chown gongqing /opt/gongqing
sudo() {{ runuser -u "$2" -- "${{@:3}}"; }}
{UPDATE}
say updated $(answers http://127.0.0.1:3000/server_info)
systemctl stop gongqing
say stopped "$(systemctl show -P Result gongqing)", processes "$(pgrep -c -u gongqing || true)", \
    files of others "$(find /srv/gongqing -not -user gongqing | wc -l)"
"""

# What an address answers, as soon as somebody does: its status, and who asks for a login. Cookies are kept on the way.
ASK = """
import base64, ssl, sys, time, urllib.error
from urllib.request import HTTPCookieProcessor, HTTPSHandler, Request, build_opener
address, *login = sys.argv[1:]
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
browser = build_opener(HTTPSHandler(context=context), HTTPCookieProcessor())
words = {"Authorization": "Basic " + base64.b64encode(login[0].encode()).decode()} if login else {}
deadline = time.monotonic() + 120
while True:
    try:
        print(browser.open(Request(address, headers=words)).status)
        break
    except urllib.error.HTTPError as error:
        print(error.code, error.headers.get("WWW-Authenticate", ""))
        break
    except OSError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.5)
"""


def test_a_home_is_served_backed_up_and_restored_as_the_page_says(tmp_path: Path):
    require_machine("nginx", "rsync", "openssl")
    files = {
        "gongqing.env": ENVIRONMENT,
        "gongqing": COMMAND,
        "gongqing.service": UNIT,
        "proxy.conf": PROXY,
        "ask.py": ASK,
    }
    printed = run_session(tmp_path, SESSION, files)
    said = [line.removeprefix("== ") for line in printed.splitlines() if line.startswith("== ")]
    assert said == [
        "without a token 401",
        "its user gongqing",
        "with its token 200",
        "after a kill 401 , restarts 1",
        'no login 401 Basic realm="gongqing"',
        "a login, no token 401",
        "a login and its token 200",
        "erased []",
        "restored, erased []",
        "restored, another [1]",
        "up again 401",
        "updated 401",
        "stopped success, processes 0, files of others 0",
    ]
