/** Places for streams of server-sent events: an open stream keeps one, and they are shared evenly among accounts and users. */
import { createFairPlaces } from '../../../base/flow/fair-places.ts'
import { TooManyRequests } from '../../../base/process/errors.ts'
import type { Caller } from '../rights/auth.ts'

const RETRY_SECONDS = 10

interface StreamPlace {
  /** Aborts when the stream ends, or has to because another needs the place. */
  signal: AbortSignal
  /** Gives the place back; also when the caller goes. */
  leave(): void
}

/** @param max in all; @param accountMax of one account; @param instead what a client may do without a stream */
export function createStreamPlaces(max: number, accountMax: number, instead: string) {
  const places = createFairPlaces({ max, firstMax: accountMax })
  const refusal = `too many event streams are open: an account has at most ${accountMax}, and all share ${max} evenly. Close one, or ${instead}`

  return {
    /** Takes a place for a stream to `caller`, whose connection `signal` is of. @throws TooManyRequests */
    enter({ accountId, userId, keyId }: Caller, signal: AbortSignal): StreamPlace {
      const ending = new AbortController()
      const leave = places.enter([accountId, userId ?? keyId], () => ending.abort())
      if (leave === null) throw new TooManyRequests(RETRY_SECONDS, refusal)
      signal.addEventListener('abort', leave, { once: true })
      if (signal.aborted) leave()
      return { signal: AbortSignal.any([signal, ending.signal]), leave }
    },
  }
}
