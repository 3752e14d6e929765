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
  /** Host of return paths and of the default SPF alignment. */
  mailfromHost: string
  /** The domain whose keys sign (`d=`). */
  dkimAuthority: string
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

export function domainOfRow(row: DomainRow): Domain {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    type: row.type as Domain['type'],
    state: row.state as Domain['state'],
    disabled: row.disabled_json ? (JSON.parse(row.disabled_json) as Disablement) : null,
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
    dkimAuthority: row.dkim_authority,
    createdAt: row.created_at,
  }
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
    dkim_authority: domain.name,
  }
}
