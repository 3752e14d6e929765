/** Why rates are what they are (own-operations.md section 11). */
import { getJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'

export type FailureClass = Api.FailureClass

export type ProviderFigures = Api.ProviderReasons

export type Visits = Api.DeliveryReasons['visits']['all']

export type DeliveryReasons = Api.DeliveryReasons

/** `start`, `end`: Unix milliseconds. */
export const readReasons = (
  startMs: number,
  endMs: number,
  domain: string | undefined,
  signal?: AbortSignal,
) => {
  const query = new URLSearchParams({
    start: String(Math.floor(startMs / 1000)),
    end: String(Math.floor(endMs / 1000)),
    ...(domain !== undefined && { domain }),
  })
  return getJson(`/sendwright/v1/delivery-reasons?${query}`, signal)
}

/** Share of final outcomes that are failures; a provider that got little mail says nothing. */
export const failedShare = ({ delivered, permanent_failed }: ProviderFigures) =>
  delivered + permanent_failed === 0 ? 0 : permanent_failed / (delivered + permanent_failed)

const JUDGED_FROM = 20 // outcomes
const WORTH_A_LOOK = 0.02 // mailbox providers look twice at senders above it

/** The provider that refuses the largest share; null if none refuses much. */
export function worstProvider(providers: readonly ProviderFigures[]): ProviderFigures | null {
  const judged = providers.filter(
    (one) => one.delivered + one.permanent_failed >= JUDGED_FROM && failedShare(one) > WORTH_A_LOOK,
  )
  return judged.reduce<ProviderFigures | null>(
    (worst, one) => (worst === null || failedShare(one) > failedShare(worst) ? one : worst),
    null,
  )
}
