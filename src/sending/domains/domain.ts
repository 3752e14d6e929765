import { weeklyWindow } from '../../base/time/weekly-window.ts'
import type { DomainRow } from '../../platform/store/schema.ts'
import { type DomainFields, fieldsOfRow, INITIAL_ROW, STOPPED_CODE } from './fields.ts'

/** A sending domain as the service uses it. */
export interface Domain extends DomainFields {
  /** The domain whose keys sign (`d=`). */
  readonly dkimAuthority: string
}

/** `now`: a disablement that has ended is ignored, even if the row still holds it. */
export function domainOfRow(row: DomainRow, now: number): Domain {
  const stored = fieldsOfRow(row)
  const { disabled, signingAuthority, dkimHost } = stored
  const isOver = disabled?.until !== undefined && disabled.until <= now
  return {
    ...stored,
    ...(isOver && { state: enabledState(row), disabled: null }),
    dkimAuthority: signingAuthority ?? dkimHost,
  }
}

/**
 * Whether it takes no mail: an operator has disabled it. Mail of a domain that the service itself has stopped is accepted, and
 * waits.
 */
export const refusesMail = ({ state, disabled }: Pick<Domain, 'state' | 'disabled'>): boolean =>
  state === 'disabled' && disabled?.code !== STOPPED_CODE

/** In place of a window: the message is sent at any time, whatever its domain says. */
export const SEND_ALWAYS = 'always'

/**
 * The first time at or after `time` at which a message may be sent; Unix milliseconds. The message's own window precedes its
 * domain's (messages.md rule 46).
 */
export function sendTime(
  time: number,
  { sendWindow }: { sendWindow?: string | null },
  domain: Pick<Domain, 'sendWindow'> | null,
): number {
  const window = sendWindow ?? domain?.sendWindow ?? SEND_ALWAYS
  return window === SEND_ALWAYS ? time : (weeklyWindow(window)?.next(time) ?? time)
}

/** The state of a domain that is not disabled. */
export function enabledState(row: Pick<DomainRow, 'type' | 'verified'>): 'active' | 'unverified' {
  return row.type === 'sandbox' || row.verified === 1 ? 'active' : 'unverified'
}

/** A new domain's row with the defaults of domains.md (D2). */
export const newDomainRow = (
  domain: Pick<DomainRow, 'id' | 'account_id' | 'name' | 'type' | 'state' | 'created_at'>,
): DomainRow => ({ ...INITIAL_ROW, ...domain, mailfrom_host: domain.name, dkim_authority: domain.name })
