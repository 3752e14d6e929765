/** The thread that reads large captured mail (large-mail.ts): parsing and verifying are linear in its bytes. */
import { serve } from '../../base/flow/side-thread.ts'
import { type Authentication, type PublicKeys, verifyOwnSignatures } from './authentication.ts'
import { fileOf, type ShownFile, type ShownRow, viewOf } from './view.ts'

const functions = {
  view: async (row: ShownRow, raw: Uint8Array): Promise<Uint8Array> =>
    Buffer.from(JSON.stringify(await viewOf(row, raw))),
  file: (raw: Uint8Array, n: number): Promise<ShownFile | null> => fileOf(raw, n),
  verify: ({ buffer, byteOffset, byteLength }: Uint8Array, keys: PublicKeys): Promise<Authentication> =>
    verifyOwnSignatures(Buffer.from(buffer, byteOffset, byteLength), keys),
}

export type ReadingFunctions = typeof functions

serve(functions)
