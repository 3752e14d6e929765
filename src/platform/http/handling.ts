/**
 * Step 6 of a request (dispatch.ts): run the handler once per Idempotency-Key, with a row in the audit log where it
 * changes something.
 */
import type { Clock } from '../../base/time/clock.ts'
import { answerTo } from './answer/errors.ts'
import type { Exchange } from './exchange.ts'
import { type Idempotency, idempotencyKey, requestDigest } from './limits/idempotency.ts'
import type { Operation } from './operation.ts'
import type { RequestContext } from './request/request-context.ts'
import { type AuditLog, entryOf, outcomeOf, recordedCall } from './rights/audit.ts'
import type { RecordedCall } from './rights/audit-rule.ts'

export interface HandlingParts {
  clock: Clock
  /** Answers to repeated POSTs; undefined: the header has no meaning. */
  idempotency?: Idempotency | undefined
  /** Undefined: changes are not recorded. */
  audit?: AuditLog | undefined
  /** Resolves when other processes have applied the changes that were made here. Default: at once. */
  applied?: (() => Promise<void>) | undefined
}

/** Runs the handler, or repeats the answer of the first call under the same Idempotency-Key. */
export type Handle = (context: RequestContext, spec: Operation, exchange: Exchange) => Promise<object>

export function createHandling({ clock, idempotency, audit, applied }: HandlingParts): Handle {
  /**
   * A change has its row in the audit log before it begins, so that neither a crash nor a full disk leaves a change
   * without one; its outcome is noted before the answer. The answer waits for the other processes too, so that a change
   * is in force everywhere when it is answered.
   */
  function perform(context: RequestContext, spec: Operation): Promise<object> {
    const { caller } = context
    const call = recordedCall(spec)
    if (audit === undefined || caller === null || call === null) return spec.handler(context)
    return performRecorded(context, spec, call, audit.open(entryOf(spec, call, { ...context.facts, caller })))
  }

  async function performRecorded(
    context: RequestContext,
    spec: Operation,
    call: RecordedCall,
    opened: ReturnType<AuditLog['open']>,
  ): Promise<object> {
    const settle = await opened
    try {
      const result = await spec.handler(context)
      await settle(outcomeOf(call, result))
      await applied?.()
      return result
    } catch (error) {
      await settle({ status: answerTo(error, clock.now()).status, made: {} })
      throw error
    }
  }

  return function handle(context, spec, exchange) {
    const { method } = exchange
    const key =
      idempotency && method === 'POST' ? idempotencyKey(exchange.headers['idempotency-key']) : undefined
    if (idempotency === undefined || key === undefined || context.caller === null)
      return perform(context, spec)
    const { accountId, kind, userId, keyId } = context.caller
    const path = exchange.url.split('?', 1)[0] as string
    const joins = spec.joinsIdempotency === true
    // Answers may hold secrets, which are for who asked for them. Those to sends hold none, and a repetition with
    // another key must not send twice.
    const owner = joins ? null : kind === 'session' ? (userId ?? keyId) : keyId
    return context.params.digest().then((digest) => {
      const call = { accountId, owner, key, digest: requestDigest(method, path, digest), joins }
      return idempotency.run(call, (record) => {
        context.idempotency = record
        return perform(context, spec)
      })
    })
  }
}
