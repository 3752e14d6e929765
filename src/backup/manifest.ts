/** What a backup says of itself. Written last, so that a folder without it is no backup. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'

const MANIFEST_FILE = 'manifest.json'
const FORMAT = 1

/** What we put into a backup; anything else could lead a restore out of the data folder. */
const OWN_PATH = /^(sendwright\.db|secret|blobs\/[-\w]{22})$/

export interface BackupFile {
  /** Below the folder, with slashes. */
  path: string
  sizeBytes: number
  /** In hex. */
  sha256: string
}

export interface Manifest {
  format: number
  /** RFC 3339, UTC: when it began. What was accepted before is in it. */
  madeAt: string
  /** Of Sendwright. */
  version: string
  schemaVersion: number
  withSecret: boolean
  counts: { messages: number; waiting: number; events: number; domains: number; blobs: number }
  /** Blobs that rows name and that were not there: lost before this backup. */
  missingBlobs: string[]
  files: BackupFile[]
}

/** Something is wrong with the folder, or with what was asked; the message is for a person. */
export class BackupError extends Error {}

/** @throws BackupError where there is no manifest, or one that this program cannot read */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, MANIFEST_FILE), 'utf8').catch((cause: unknown) => {
    throw new BackupError(`"${folder}" holds no whole backup: it has no ${MANIFEST_FILE}`, { cause })
  })
  try {
    const manifest = JSON.parse(text) as Manifest
    const isKnown = manifest.format === FORMAT && Array.isArray(manifest.files)
    if (isKnown && manifest.files.every(({ path }) => OWN_PATH.test(path))) return manifest
  } catch {
    // Said below.
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

/** A new file that only its owner may read. */
export async function writeSynced(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Of a file or a folder. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const READ_BYTES = 1024 * 1024

/** @param onBytes told of each piece */
export async function sha256Of(file: string, onBytes: (bytes: number) => void): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(file, { highWaterMark: READ_BYTES })) {
    hash.update(piece as Buffer)
    onBytes((piece as Buffer).byteLength)
  }
  return hash.digest('hex')
}

/** A piece of long work, for whoever waits. */
export interface Progress {
  step: 'database' | 'blobs' | 'checksums' | 'integrity' | 'files'
  doneBytes: number
  /** 0: not known. */
  totalBytes: number
}

export type OnProgress = (progress: Progress) => void

/** Counts up towards `totalBytes`, telling now and then. */
export function counter(step: Progress['step'], totalBytes: number, onProgress: OnProgress) {
  let doneBytes = 0
  let told = 0
  onProgress({ step, doneBytes, totalBytes })
  return (bytes: number) => {
    doneBytes += bytes
    if (doneBytes - told < TELL_EVERY_BYTES && doneBytes < totalBytes) return
    told = doneBytes
    onProgress({ step, doneBytes, totalBytes })
  }
}

const TELL_EVERY_BYTES = 16 * 1024 * 1024
