"""The elbow finds how many clusters there are where they lie apart, and says so where there is none."""

import numpy as np
from numpy.typing import NDArray

from pipelines.rewrite.personas import cluster, elbow, nearest, sse_curve

SEEDS = range(5)
MOST = 12


def synthetic(k: int, seed: int, apart: float, sd: float, n: int = 240) -> NDArray[np.float64]:
    """Profiles of `k` kinds: centres in [.15, .85]^4 at least `apart` from one another (drawn again until they are),
    normal around them; standardised, as personas are.
    """
    rng = np.random.default_rng((k, seed))
    while True:
        centres = rng.uniform(0.15, 0.85, (k, 4))
        between = np.linalg.norm(centres[:, None] - centres[None], axis=2)[np.triu_indices(k, 1)]
        if between.min(initial=np.inf) >= apart:
            break
    scores = np.clip(centres[np.arange(n) % k] + rng.normal(0, sd, (n, 4)), 0, 1)
    standard: NDArray[np.float64] = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    return standard


def elbows(k: int, apart: float, sd: float) -> list[int | None]:
    return [elbow(sse_curve(synthetic(k, seed, apart, sd), MOST, seed=0)) for seed in SEEDS]


def test_the_elbow_is_the_number_of_clusters_where_they_are_apart_and_there_is_none_in_a_cloud():
    """Measured over ten seeds: 10, 9, 10 and 10 of 10; where they overlap, 0 to 2 of 10."""
    for k in (2, 6):
        assert elbows(k, apart=0.35, sd=0.05).count(k) >= 4
    assert elbows(6, apart=0.0, sd=0.15).count(6) <= 1
    for sd in (0.05, 0.15):
        assert elbows(1, apart=0.0, sd=sd).count(None) >= 4


def test_curves():
    for curve, k in (
        ([], None),
        ([5.0], None),
        ([5.0, 1.0], None),  # two points bend nowhere
        ([0.0, 0.0, 0.0], None),  # all profiles are the same
        ([3.0, 3.0, 3.0, 3.0], None),
        ([100.0, 50.0, 0.0, 0.0, 0.0, 0.0], 3),  # an error of 0 has no logarithm
        ([100.0, 10.0, 9.0, 8.5, 8.0, 7.6], 2),
        ([100.0, 80.0, 64.0, 51.2, 40.96, 32.768], None),  # falls by as much each time
        ([100.0, 99.0, 97.0, 90.0, 60.0, 1.0], None),  # bends the other way
    ):
        assert elbow(curve) == k, curve


def test_a_curve_ends_before_each_row_is_a_cluster_of_its_own():
    rows = np.array([[0.0], [1.0], [5.0], [9.0], [9.0], [9.0]])
    curve = sse_curve(rows, MOST, seed=0)
    assert len(curve) == 3
    assert curve == sorted(curve, reverse=True)
    assert sse_curve(np.ones((7, 2)), MOST, seed=0) == [0.0]
    assert len(sse_curve(np.arange(40.0).reshape(20, 2), 5, seed=0)) == 5


def test_without_an_elbow_there_are_four_clusters_and_ten_profiles_for_each():
    for n, k in ((19, 1), (20, 2), (400, 4)):
        made = cluster(np.random.default_rng(n).normal(size=(n, 4)), MOST, seed=0)
        assert (made.elbow, len(made.centres)) == (False, k)
    made = cluster(np.ones((50, 4)), MOST, seed=0)  # all the same
    assert (made.elbow, made.centres.tolist(), made.curve) == (False, [[1.0] * 4], [0.0])


def test_one_far_from_all_others_is_no_cluster_to_draw_from():
    cloud = np.random.default_rng(0).normal(size=(300, 4))
    far = np.concatenate([cloud, [[60.0] * 4]])
    assert elbow(sse_curve(far, MOST, seed=0)) == 2
    made = cluster(far, MOST, seed=0)
    assert (made.elbow, len(made.centres)) == (False, 4)


def test_clusters_are_numbered_by_size_and_then_by_centre():
    rng = np.random.default_rng(0)
    kinds = [((3.0, 0.0), 20), ((-3.0, 0.0), 40), ((0.0, 3.0), 20)]
    rows = np.concatenate([centre + rng.normal(0, 0.1, (size, 2)) for centre, size in kinds])
    for seed in range(3):
        made = cluster(rows, 6, seed)
        assert made.elbow
        assert made.centres.round().tolist() == [[-3, 0], [0, 3], [3, 0]]
        assert np.bincount(nearest(rows, made.centres)[0]).tolist() == [40, 20, 20]


def test_the_result_does_not_hang_on_the_number_of_threads():
    from threadpoolctl import threadpool_limits

    rows = synthetic(4, 0, apart=0.0, sd=0.15, n=700)  # more than a chunk of k-means
    with threadpool_limits(limits=1):
        alone = cluster(rows, 5, seed=0)
    with threadpool_limits(limits=2):
        shared = cluster(rows, 5, seed=0)
    assert alone.curve == shared.curve
    assert alone.centres.tolist() == shared.centres.tolist()
