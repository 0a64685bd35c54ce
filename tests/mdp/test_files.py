"""MDPs on disk: whole or not at all, the same or an error."""

from __future__ import annotations

import dataclasses
import errno
import os
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mellowmax._common import npz
from mellowmax.mdp import MDP, chain, grid_world, two_state

P = np.full((2, 3, 2), 0.5)
R = np.arange(6.0).reshape(2, 3) / 7


def arrays_of(mdp):
    fields = {f.name: getattr(mdp, f.name) for f in dataclasses.fields(mdp)}
    return {name: values for name, values in fields.items() if isinstance(values, np.ndarray)}


FILED = [
    two_state(),
    chain(4, discount=0.5),
    grid_world((3, 4), goal_reward=2.0),
    MDP.from_arrays(P, R, 0.9, allowed=[[True, True, False]] * 2),
    MDP.from_gymnasium("FrozenLake-v1", 1 / 3),
]


@pytest.mark.parametrize("mdp", FILED, ids=str)
def test_a_saved_mdp_comes_back_bit_for_bit(mdp, tmp_path):
    path = tmp_path / "name without a suffix"
    mdp.save(str(path))
    back = MDP.load(path)
    assert back.discount == mdp.discount
    assert arrays_of(back).keys() == arrays_of(mdp).keys()
    for name, values in arrays_of(mdp).items():
        assert getattr(back, name).tobytes() == values.tobytes()
        assert getattr(back, name).dtype == values.dtype
        assert getattr(back, name).strides == values.strides
    assert os.listdir(tmp_path) == [path.name]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.npz"
    chain(3).save(path)
    return path


def test_a_truncated_file_is_an_error_at_any_length(saved):
    whole = saved.read_bytes()
    # Every length within the archive's first header and its last entries, and some between.
    lengths = {*range(80), *range(80, len(whole) - 120, 11), *range(len(whole) - 120, len(whole))}
    for length in lengths:
        saved.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"must be a saved MDP, got '.*model.npz'"):
            MDP.load(saved)


def test_a_damaged_file_is_an_error_or_the_same_mdp(saved):
    whole, rng = saved.read_bytes(), np.random.default_rng(0)
    errors = 0
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        saved.write_bytes(damaged)
        try:
            mdp = MDP.load(saved)
        except ValueError as error:
            assert str(saved) in str(error)  # noqa: PT017
            errors += 1
        else:  # a time or an attribute that the archive keeps
            for name, values in arrays_of(chain(3)).items():
                np.testing.assert_array_equal(getattr(mdp, name), values)
    assert errors > 100


def text(path):
    path.write_text("states: 3\n")


def empty(path):
    path.write_bytes(b"")


def another_npz(path):
    with open(path, "wb") as file:
        np.savez(file, probabilities=P, rewards=R)


def npz_of_another_format(path):
    with open(path, "wb") as file:
        np.savez(file, format="something else", version=1)


def compressed(path):
    fields = {"probabilities": P, "rewards": R, "discount": 0.9}
    with open(path, "wb") as file:
        np.savez_compressed(file, format="mellowmax MDP", version=1, fields=[*fields], **fields)


def one_array(path):
    with open(path, "wb") as file:
        np.save(file, P)


def a_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("format", "mellowmax MDP")
        archive.writestr("version.npy", "1")


def pickled(path):
    fields = {"probabilities": np.array([print], object), "rewards": R, "discount": 0.9}
    with open(path, "wb") as file:
        np.savez(file, format="mellowmax MDP", version=1, fields=list(fields), **fields)


@pytest.mark.parametrize(
    "write", [text, empty, another_npz, npz_of_another_format, compressed, one_array, a_zip]
)
def test_a_file_of_another_kind_is_an_error(write, tmp_path):
    path = tmp_path / "foreign"
    write(path)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        MDP.load(path)
    assert str(error.value) == (
        f"`path` must be a saved MDP, got {str(path)!r}, "
        "which is damaged, compressed or of another kind"
    )


def test_what_is_pickled_is_not_even_read(tmp_path):
    pickled(tmp_path / "foreign")
    rule = r"field 'probabilities' must be an array \[S, A, K\] of numbers, got object \[1\]$"
    with pytest.raises(ValueError, match=rf"must be a saved MDP, got '.*foreign': {rule}"):
        MDP.load(tmp_path / "foreign")


def test_a_newer_version_is_an_error(saved, monkeypatch):
    monkeypatch.setattr(npz, "VERSION", 2)
    chain(3).save(saved)
    monkeypatch.undo()
    with pytest.raises(
        ValueError, match=r"version 1 of the format, got version 2 in '.*model.npz'"
    ):
        MDP.load(saved)


def test_what_the_system_says_stays_what_it_is(tmp_path):
    with pytest.raises(FileNotFoundError, match="`path` must be a file that exists, got"):
        MDP.load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        MDP.load(tmp_path)
    with pytest.raises(ValueError, match="`path` must be a regular file or a new one, got"):
        chain(3).save(tmp_path)
    with pytest.raises(FileNotFoundError, match="`path` must be in a directory that exists, got"):
        chain(3).save(tmp_path / "nowhere" / "model")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("step", ["np.savez", "os.fsync", "os.replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(step, saved, monkeypatch):
    before = saved.read_bytes()
    module, name = step.split(".")

    def fail(file, *args, **kwargs):
        if name == "savez":
            file.write(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr({"np": np, "os": os}[module], name, fail)
    with pytest.raises(OSError, match="No space left"):
        chain(7).save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_file_is_complete_before_it_has_its_name(saved, monkeypatch):
    replace, seen = os.replace, []

    def look(aside, target):
        seen.append((repr(MDP.load(aside)), repr(MDP.load(target)), Path(aside).parent))
        replace(aside, target)

    monkeypatch.setattr(os, "replace", look)
    chain(7).save(saved)
    assert seen == [(repr(chain(7)), repr(chain(3)), saved.parent)]
    assert MDP.load(saved).n_states == 7


def test_links_and_permissions_are_as_for_any_file(saved, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(saved)
    chain(7).save(link)
    assert link.is_symlink()
    assert MDP.load(saved).n_states == 7
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert stat.S_IMODE(saved.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
