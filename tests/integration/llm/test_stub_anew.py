"""One stub serves the tests of this folder: anew, it is as one that has just been started."""

import threading
import time

from asking_tools import IN_BATCHES, asking, llm_for, questions, vendor_as


def test_anew_there_is_no_book_no_file_and_no_fault(tmp_path):
    with vendor_as(faults={"malformed": 0.5}) as vendor:
        vendor.batches(keeping=10)
        llm = llm_for(tmp_path, vendor.base_url, price=IN_BATCHES)
        with asking(tmp_path, llm, batch=True) as ask:
            ask.ask("emotions", questions(5))
        assert vendor.stats()["requests"] >= 5
        assert vendor.batches()["files"]
    with vendor_as(latency=0.01) as vendor:
        assert vendor.stats() == dict.fromkeys(vendor.stats(), 0) | {"faults": {}}
        assert (vendor.book(), vendor.batches()) == ({}, {"files": [], "batches": []})
        with asking(tmp_path, llm) as ask:
            assert all(reply.value for reply in ask.ask("emotions", questions(9)[5:]))
        assert vendor.stats()["faults"] == {"none": 4}


def test_what_was_under_way_ends_in_the_old_book(tmp_path):
    with vendor_as(latency=0.5) as vendor:
        llm = llm_for(tmp_path, vendor.base_url)

        def asks():
            with asking(tmp_path, llm) as ask:
                ask.ask("emotions", questions(3))

        asking_on = threading.Thread(target=asks)
        asking_on.start()
        while asking_on.is_alive() and vendor.stats()["requests"] < 3:
            time.sleep(0.01)
        vendor.anew()
        asking_on.join()
        assert vendor.stats() == dict.fromkeys(vendor.stats(), 0) | {"faults": {}}
