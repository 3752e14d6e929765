/** The thread that reads large captured mail (large-mail.ts): parsing and verifying are linear in its bytes. */
import { serve } from '../../base/flow/side-thread.ts'
import { chunkOf } from '../../platform/store/blobs/blobs.ts'
import type { FileRange } from '../../protocols/message/mime-message.ts'
import { type Authentication, type PublicKeys, verifyOwnSignatures } from './authentication.ts'
import { fileOf, type ShownFile, type ShownRow, type ShownTexts, textsOf, viewOf } from './view.ts'

const functions = {
  view: async (row: ShownRow, raw: Uint8Array): Promise<Uint8Array> =>
    Buffer.from(JSON.stringify(await viewOf(row, raw))),
  file: (raw: Uint8Array, n: number): Promise<ShownFile | null> => fileOf(raw, n),
  texts: (raw: Uint8Array): Promise<ShownTexts> => textsOf(raw),
  verify: ({ path, start, end }: FileRange, keys: PublicKeys): Promise<Authentication> =>
    verifyOwnSignatures(
      chunkOf(() => path, start, end),
      keys,
    ),
}

export type ReadingFunctions = typeof functions

serve(functions)
