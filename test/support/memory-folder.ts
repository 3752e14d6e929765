/** Where temporary data of tests is kept in memory: a disk makes small files and syncs cost more than the tests themselves. */
import { accessSync, constants, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

const SHARED_MEMORY = '/dev/shm'
/** The kernel's magic number of tmpfs (statfs(2)). */
const TMPFS = 0x0102_1994
/** A run of all tests holds some 300 MB there at a time. Containers often have 64 MB: too little. */
const ROOM_MIN_BYTES = 2 * 1024 ** 3
/** What is kept there is taken from the memory of the tests, of which a browser and three services need the most. */
const MEMORY_MIN_BYTES = 4 * 1024 ** 3

/** A folder of the system that is kept in memory, with room for a run of the tests; else undefined. */
export function memoryFolder(): string | undefined {
  if (process.availableMemory() < MEMORY_MIN_BYTES) return undefined
  try {
    accessSync(SHARED_MEMORY, constants.W_OK)
    const { type, bavail, bsize } = statfsSync(SHARED_MEMORY)
    return type === TMPFS && bavail * bsize >= ROOM_MIN_BYTES ? SHARED_MEMORY : undefined
  } catch {
    return undefined // not on Linux, or not ours to write
  }
}

/** Temporary files of a test that is about a disk's speed: the folder of other tests may be in memory. It removes them itself. */
export const diskFolder = (): string => process.env['SENDWRIGHT_TEST_DISK'] ?? tmpdir()
