"""Much memory of many kinds, and children by fork: prints what must be the same wherever the memory is from."""

import array
import ctypes
import hashlib
import mmap
import multiprocessing
import os
import random
import subprocess
import sys
import threading

random.seed(5)
numbers = array.array("Q", (random.getrandbits(64) for _ in range(150_000)))
blob = bytearray(40 << 20)
for at in range(0, len(blob), 4096):
    blob[at : at + 8] = numbers[at // 4096].to_bytes(8, "little")
table = {f"key {i}": [i, str(i) * (i % 9)] for i in range(100_000)}


def digest(*parts):
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part if isinstance(part, (bytes, bytearray, memoryview)) else repr(part).encode())
    return sha.hexdigest()


def in_fork(work):
    end, other = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(other, work().encode())
        os._exit(0)
    os.close(other)
    with open(end) as said:
        text = said.read()
    assert os.waitpid(pid, 0)[1] == 0
    return text


def change_and_tell():
    blob[::4096] = bytes(len(blob) // 4096)
    table.clear()
    return digest(blob, len(table), list(range(200_000)))


def of_part(part):
    return digest(blob[part << 20 : (part + 1) << 20], sorted(table)[part * 1000 : (part + 1) * 1000], bytearray(part << 20))


def grow(results, index):
    text = bytearray()
    for i in range(2000):
        text += bytes([i % 251]) * 4099
    results[index] = digest(text)


def main():
    before = digest(blob, sorted(table), numbers.tobytes())
    print(before)
    print(in_fork(change_and_tell), in_fork(lambda: in_fork(change_and_tell)))
    assert digest(blob, sorted(table), numbers.tobytes()) == before
    with multiprocessing.get_context("fork").Pool(4) as pool:
        print(digest(pool.map(of_part, range(40))))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(str.upper, ["spawned"]))
    shared = mmap.mmap(-1, 8 << 20)
    shared[:4] = b"here"
    in_fork(lambda: str(shared.write(b"from the child")))
    print(shared[:14])
    private = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    private[:] = bytes(range(256)) * (len(private) // 256)
    private.madvise(mmap.MADV_DONTNEED, 1 << 20, 2 << 20)
    private.resize(16 << 20)
    print(digest(private[:]))
    results = [None] * 4
    threads = [threading.Thread(target=grow, args=(results, i)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(results)
    print(subprocess.run([sys.executable, "-c", "print(sum(bytearray(64 << 20)))"], capture_output=True, text=True).stdout)
    print(digest(ctypes.string_at(ctypes.create_string_buffer(32 << 20), 32 << 20)))


if __name__ == "__main__":
    main()
