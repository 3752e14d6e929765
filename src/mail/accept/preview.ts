/**
 * A message as it would be sent to its first recipient, without accepting it: nothing is stored, counted or queued. The
 * same steps as accept.ts, with the bodies in memory or in the request's own spool files.
 */

import { newId } from '../../base/ids.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import { inPieces, type LazyChunk } from '../../protocols/message/mime-message.ts'
import { addressKey } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { type ComposedCopy, type CopyParts, composeCopy } from '../compose/copy.ts'
import { type TextPart, textsOf } from '../compose/texts.ts'
import { authorFault } from '../record/authors.ts'
import type { MessageContent } from '../record/record.ts'
import { CopyTooLarge, RenderError } from '../record/variables.ts'
import type { Draft } from '../request/draft.ts'
import { type Accepted, decide } from './decide.ts'
import { makeRecord, storeBody } from './rows.ts'
import { loadFacts, type SendFactsParts } from './send-facts.ts'

export interface PreviewParts extends SendFactsParts, CopyParts {}

export interface Preview {
  /** Why a send would be refused, or this copy would not be made; null: it would be sent. */
  refusal: string | null
  /** Null: the copy cannot be composed. */
  copy: PreviewedCopy | null
}

export interface PreviewedCopy {
  /** With the recipient's variables, before tracking. */
  texts: readonly TextPart[]
  /** With everything that delivery adds but signatures. */
  sent: ComposedCopy
  sentTexts: readonly TextPart[]
  content: MessageContent
}

/** `tracker` must not store anything. @throws NotFound when the domain was deleted meanwhile */
export async function previewMessage(
  given: PreviewParts,
  draft: Draft,
  sender: Domain,
  now: number,
): Promise<Preview> {
  const facts = await loadFacts(given, draft, sender, now)
  const { domain, template } = facts
  const decision = decide(draft, facts, now)
  const refusal = decision.kind === 'rejected' ? decision.error.message : null
  const accepted: Accepted =
    decision.kind === 'accepted'
      ? decision
      : {
          kind: 'accepted',
          template: template instanceof Error ? null : template,
          ...{ tags: draft.tags, newTags: [], direct: [], viaLists: [], lastDueAt: now },
        }
  const parts = { ...given, blobs: bodiesInMemory() }
  const body = await storeBody(draft.body, parts.blobs)
  const origin = { domain, method: 'http', originatingIp: null, keyId: null } as const
  const record = makeRecord(draft, accepted, body, origin, now)
  const [recipient = null] = draft.recipients
  const variables =
    draft.recipientVariables && recipient ? (draft.recipientVariables.get(addressKey(recipient)) ?? {}) : null
  const target = { delivery: null, recipient, variables, list: null }
  const id = newId(now)
  try {
    const written = await composeCopy(parts, record, domain, target)
    const sent = await composeCopy(parts, record, domain, { ...target, delivery: { id, sid: id } })
    const frame = await textsOf(record.content, parts.blobs, parts.largeTexts)
    const texts = written.changedTexts?.() ?? frame
    const fault = sent.author === null ? null : await authorFault(given.domains, domain, sent.author)
    return {
      refusal: refusal ?? fault?.message ?? null,
      copy: { texts, sent, sentTexts: sent.changedTexts?.() ?? frame, content: record.content },
    }
  } catch (error) {
    if (!(error instanceof RenderError || error instanceof CopyTooLarge)) throw error
    return { refusal: refusal ?? error.message, copy: null }
  }
}

/** A blob store for one message that is never written: its names are numbers. */
function bodiesInMemory(): BlobStore {
  const held: LazyChunk[] = []
  const discard = async () => {}
  return {
    async spool(content) {
      const pieces: Uint8Array[] = []
      for await (const piece of content) pieces.push(piece)
      return { chunk: inPieces(Buffer.concat(pieces)), discard }
    },
    keep: async (chunk) => String(held.push(chunk) - 1),
    async read(name) {
      const chunk = held[Number(name)]
      if (chunk === undefined) throw new RangeError(`"${name}" is no body of this message`)
      return chunk
    },
    remove: discard,
    hold: () => discard,
  }
}
