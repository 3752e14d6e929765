/** The manifest of a backup. It is written last: a folder without one is not a complete backup. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Of } from '../../base/shape.ts'
import type { MANIFEST, PROGRESS } from './shapes.ts'

const MANIFEST_FILE = 'manifest.json'
const FORMAT = 1

/** Paths that a backup may contain; any other could make a restore write outside the data folder. */
const OWN_PATH = /^(sendwright\.db|secret|blobs\/[-\w]{22})$/

export interface BackupFile {
  /** Relative to the backup's folder, with slashes. */
  path: string
  sizeBytes: number
  /** Hexadecimal. */
  sha256: string
}

export type Manifest = Of<typeof MANIFEST> & { files: BackupFile[] }

/** The folder or the request is at fault; the message is for the operator. */
export class BackupError extends Error {}

/** @throws BackupError without a manifest, or for one that this program cannot read */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, MANIFEST_FILE), 'utf8').catch((cause: unknown) => {
    throw new BackupError(`"${folder}" holds no whole backup: it has no ${MANIFEST_FILE}`, { cause })
  })
  try {
    const manifest = JSON.parse(text) as Manifest
    const isKnown = manifest.format === FORMAT && Array.isArray(manifest.files)
    if (isKnown && manifest.files.every(({ path }) => OWN_PATH.test(path))) return manifest
  } catch {
    // Reported below.
  }
  throw new BackupError(`Cannot read ${MANIFEST_FILE} in "${folder}": it is damaged, or of a newer version`)
}

export async function writeManifest(folder: string, manifest: Omit<Manifest, 'format'>): Promise<void> {
  const text = `${JSON.stringify({ format: FORMAT, ...manifest }, null, 1)}\n`
  const part = join(folder, `${MANIFEST_FILE}.part`)
  await writeSynced(part, text)
  await syncPath(folder)
  await rename(part, join(folder, MANIFEST_FILE))
  await syncPath(folder)
}

/** Writes and syncs a new file that only its owner can read. */
export async function writeSynced(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Syncs a file or a folder. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const READ_BYTES = 1024 * 1024

/** @param onBytes called with the size of each chunk */
export async function sha256Of(file: string, onBytes: (bytes: number) => void): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(file, { highWaterMark: READ_BYTES })) {
    hash.update(piece as Buffer)
    onBytes((piece as Buffer).byteLength)
  }
  return hash.digest('hex')
}

/** One step of a backup, verification or restore. */
export type Progress = Of<typeof PROGRESS>

export type OnProgress = (progress: Progress) => void

/** Returns a function that adds bytes, and calls `onProgress` at intervals and at the end. */
export function counter(step: Progress['step'], totalBytes: number, onProgress: OnProgress) {
  let doneBytes = 0
  let reportedBytes = 0
  onProgress({ step, doneBytes, totalBytes })
  return (bytes: number) => {
    doneBytes += bytes
    if (doneBytes - reportedBytes < REPORT_EVERY_BYTES && doneBytes < totalBytes) return
    reportedBytes = doneBytes
    onProgress({ step, doneBytes, totalBytes })
  }
}

const REPORT_EVERY_BYTES = 16 * 1024 * 1024
