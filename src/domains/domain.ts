import type { DomainRow } from '../store/schema.ts'

/** A sending domain as the service uses it. */
export interface Domain {
  id: string
  accountId: string
  name: string
  type: 'custom' | 'sandbox'
  state: 'active' | 'unverified' | 'disabled'
  disabled: Disablement | null
  spamAction: string
  wildcard: boolean
  requireTls: boolean
  skipVerification: boolean
  useAutomaticSenderSecurity: boolean
  encryptIncomingMessage: boolean
  webPrefix: string
  webScheme: string
  /** 0: the service's default. */
  messageTtlSeconds: number
  archiveTo: string | null
  /** The chosen host of return paths; `returnPathHost` says whether it is used. */
  mailfromHost: string
  /** The SPF record of that host was valid at the last check. */
  returnPathValid: boolean
  /** The domain whose keys sign (`d=`). */
  dkimAuthority: string
  /** The chosen authority, whose records the domain shows; signs once it has an active key. */
  dkimHost: string
  /** The authority changed and its records have not been checked since. */
  dkimUnverified: boolean
  /** SPF and DKIM were valid at the last check; `state` says the same unless the domain is disabled. */
  verified: boolean
  /** The tracking host's record was valid at the last check; otherwise links use the fallback host. */
  trackingValid: boolean
  /** Addresses and pool chosen when the domain was created; null: all of the account. */
  sendingIps: readonly string[] | null
  sendingPoolId: string | null
  /** Where the domain is enrolled in dynamic pools: that of its band. */
  dynamicPoolId: string | null
  createdAt: number
}

export interface Disablement {
  code: string
  note: string
  reason: string
  permanently: boolean
  /** Unix milliseconds. */
  until?: number
}

/** `now`: a disablement that has ended is ignored, even if the row still holds it. */
export function domainOfRow(row: DomainRow, now: number): Domain {
  const disabled = row.disabled_json ? (JSON.parse(row.disabled_json) as Disablement) : null
  const over = disabled?.until !== undefined && disabled.until <= now
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    type: row.type as Domain['type'],
    state: over ? enabledState(row) : (row.state as Domain['state']),
    disabled: over ? null : disabled,
    spamAction: row.spam_action,
    wildcard: row.wildcard === 1,
    requireTls: row.require_tls === 1,
    skipVerification: row.skip_verification === 1,
    useAutomaticSenderSecurity: row.use_automatic_sender_security === 1,
    encryptIncomingMessage: row.encrypt_incoming_message === 1,
    webPrefix: row.web_prefix,
    webScheme: row.web_scheme,
    messageTtlSeconds: row.message_ttl_seconds,
    archiveTo: row.archive_to,
    mailfromHost: row.mailfrom_host,
    returnPathValid: row.return_path_valid === 1,
    dkimAuthority: row.signing_authority ?? row.dkim_authority,
    dkimHost: row.dkim_authority,
    dkimUnverified: row.dkim_unverified === 1,
    verified: row.verified === 1,
    trackingValid: row.tracking_valid === 1,
    sendingIps: row.sending_ips_json ? (JSON.parse(row.sending_ips_json) as string[]) : null,
    sendingPoolId: row.sending_pool_id,
    dynamicPoolId: row.dynamic_pool_id,
    createdAt: row.created_at,
  }
}

/** The state of a domain that is not disabled. */
export function enabledState(row: Pick<DomainRow, 'type' | 'verified'>): 'active' | 'unverified' {
  return row.type === 'sandbox' || row.verified === 1 ? 'active' : 'unverified'
}

/** A new domain's row with the defaults of domains.md (D2). */
export function newDomainRow(
  domain: Pick<DomainRow, 'id' | 'account_id' | 'name' | 'type' | 'state' | 'created_at'>,
): DomainRow {
  return {
    ...domain,
    disabled_json: null,
    spam_action: 'disabled',
    wildcard: 0,
    require_tls: 0,
    skip_verification: 0,
    use_automatic_sender_security: 0,
    encrypt_incoming_message: 0,
    web_prefix: 'email',
    web_scheme: 'http',
    message_ttl_seconds: 0,
    archive_to: null,
    mailfrom_host: domain.name,
    return_path_valid: 0,
    dkim_authority: domain.name,
    signing_authority: null,
    dkim_unverified: 0,
    verified: 0,
    tracking_valid: 0,
    sending_ips_json: null,
    sending_pool_id: null,
    dynamic_pool_id: null,
  }
}
