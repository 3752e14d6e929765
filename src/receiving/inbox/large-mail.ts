/** Reads captured mail: small ones here, large ones in a worker thread, so that they do not block the main thread. */
import { join } from 'node:path'
import { createSideThread } from '../../base/flow/side-thread.ts'
import { Unavailable } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import type { Chunk } from '../../protocols/message/mime-message.ts'
import { type Authentication, type PublicKeys, unverified, verifyOwnSignatures } from './authentication.ts'
import type { ReadingFunctions } from './reading-thread.ts'
import type { CAPTURED_WHOLE } from './shapes.ts'
import { fileOf, type ShownFile, type ShownRow, type ShownTexts, textsOf, viewOf } from './view.ts'

export interface MailReader {
  /** As `verifyOwnSignatures`. */
  verify(raw: Chunk, keys: PublicKeys): Promise<Authentication>
  /** As `viewOf`: the object, or its JSON. `read` returns the bytes. */
  view(row: ShownRow, read: () => Promise<Buffer>): Promise<Of<typeof CAPTURED_WHOLE> | Uint8Array>
  /** As `fileOf`. */
  file(row: ShownRow, read: () => Promise<Buffer>, n: number): Promise<ShownFile | null>
  /** As `textsOf`. */
  texts(row: Pick<ShownRow, 'size_bytes'>, read: () => Promise<Buffer>): Promise<ShownTexts>
  close(): Promise<void>
}

/** Larger mail is read in the worker thread; one of this size takes up to 40 ms. */
const READ_HERE_MAX_BYTES = 256 * 1024

export function createMailReader(): MailReader {
  const thread = createSideThread<ReadingFunctions>(join(import.meta.dirname, 'reading-thread.ts'))
  const isSmall = ({ size_bytes }: Pick<ShownRow, 'size_bytes'>) => size_bytes <= READ_HERE_MAX_BYTES
  return {
    verify(raw, keys) {
      const file = raw instanceof Uint8Array ? undefined : raw.file?.()
      return file === undefined
        ? verifyOwnSignatures(raw, keys)
        : thread.call('verify', () => [file, keys]).catch(notVerified)
    },
    view: async (row, read) =>
      isSmall(row)
        ? viewOf(row, await read())
        : thread.call(
            'view',
            async () => [row, await read()],
            ([, raw]) => ownMemory(raw),
          ),
    file: async (row, read, n) =>
      isSmall(row)
        ? fileOf(await read(), n)
        : thread.call(
            'file',
            async () => [await read(), n],
            ([raw]) => ownMemory(raw),
          ),
    texts: async (row, read) =>
      isSmall(row)
        ? textsOf(await read())
        : thread.call(
            'texts',
            async () => [await read()],
            ([raw]) => ownMemory(raw),
          ),
    close: () => thread.close(),
  }
}

/** The mail is kept all the same: captured mail must be visible. */
function notVerified(error: unknown): Authentication {
  if (!(error instanceof Unavailable)) throw error
  return unverified('verifying took too long')
}

/** Transferred instead of copied, if the buffer holds nothing else. */
const ownMemory = ({ buffer, byteLength }: Uint8Array): ArrayBuffer[] =>
  buffer.byteLength === byteLength ? [buffer as ArrayBuffer] : []
