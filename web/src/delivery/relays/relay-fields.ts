/** The fields of the form of a relay, and what they are sent as. Pure. */
import type { GivenRelay, Login, Relay } from './relays-api.ts'

/** As typed; limits are texts, and empty where there is none. */
export interface RelayFields {
  name: string
  host: string
  port: string
  tls: Relay['tls']
  allowUnverified: boolean
  /** `none`: no login. */
  mechanism: Login['mechanism'] | 'none'
  username: string
  password: string
  tokenUrl: string
  clientId: string
  scope: string
  grant: NonNullable<Login['oauth']>['grant']
  clientAuth: NonNullable<Login['oauth']>['client_auth']
  clientSecret: string
  refreshToken: string
  connections: string
  perConnection: string
  perSecond: string
  perDay: string
  maxSize: string
  /** Empty: each delivery has a return path of its own. */
  sender: string
  returnPath: boolean
  messageId: boolean
  offered: 'none' | 'all' | 'listed'
  /** Ids, separated by commas. */
  accounts: string
}

export const NEW_RELAY: RelayFields = {
  ...{ name: '', host: '', port: '587', tls: 'starttls', allowUnverified: false },
  ...{ mechanism: 'auto', username: '', password: '' },
  ...{ tokenUrl: '', clientId: '', scope: '', grant: 'client_credentials', clientAuth: 'body' },
  ...{ clientSecret: '', refreshToken: '' },
  ...{ connections: '', perConnection: '', perSecond: '', perDay: '', maxSize: '' },
  ...{ sender: '', returnPath: false, messageId: false, offered: 'none', accounts: '' },
}

const shown = (limit: number | null) => (limit === null ? '' : String(limit))

export function fieldsOf(relay: Relay): RelayFields {
  const { login, limits, alters, offered_to: offered } = relay
  const { token_url: tokenUrl = '', client_id: clientId = '', scope, grant, client_auth } = login?.oauth ?? {}
  return {
    ...NEW_RELAY,
    ...{ name: relay.name, host: relay.host, port: String(relay.port), tls: relay.tls },
    allowUnverified: relay.allow_unverified,
    mechanism: login?.mechanism ?? 'none',
    username: login?.username ?? '',
    ...{ tokenUrl, clientId, scope: scope ?? '' },
    ...(grant && { grant }),
    ...(client_auth && { clientAuth: client_auth }),
    connections: shown(limits.connections),
    perConnection: shown(limits.messages_per_connection),
    perSecond: shown(limits.messages_per_second),
    perDay: shown(limits.messages_per_day),
    maxSize: shown(limits.max_message_size),
    sender: relay.return_path ?? '',
    ...{ returnPath: alters.return_path, messageId: alters.message_id },
    offered: offered === 'all' ? 'all' : offered.length > 0 ? 'listed' : 'none',
    accounts: offered === 'all' ? '' : offered.join(', '),
  }
}

/** Whether the login is by access tokens. */
export const hasTokens = ({ mechanism }: Pick<RelayFields, 'mechanism'>) =>
  mechanism === 'xoauth2' || mechanism === 'oauthbearer'

/** What is no number is sent as it is, so that the service says what is wrong with it. */
const numberOf = (text: string) => (text.trim() === '' ? null : Number(text))

function offeredTo({ offered, accounts }: RelayFields): GivenRelay['offered_to'] {
  if (offered === 'all') return 'all'
  return offered === 'none' ? [] : accounts.split(/[\s,]+/).filter((id) => id !== '')
}

export function relayOf(fields: RelayFields): GivenRelay {
  return {
    host: fields.host.trim(),
    port: Number(fields.port),
    tls: fields.tls,
    allow_unverified: fields.allowUnverified,
    login: loginOf(fields),
    limits: {
      connections: numberOf(fields.connections),
      messages_per_connection: numberOf(fields.perConnection),
      messages_per_second: numberOf(fields.perSecond),
      messages_per_day: numberOf(fields.perDay),
      max_message_size: numberOf(fields.maxSize),
    },
    alters: { return_path: fields.returnPath, message_id: fields.messageId },
    return_path: fields.sender.trim() || null,
    offered_to: offeredTo(fields),
  }
}

function loginOf(fields: RelayFields): GivenRelay['login'] {
  const { mechanism, username, password, clientSecret, refreshToken } = fields
  if (mechanism === 'none') return null
  if (!hasTokens(fields)) return { mechanism, username: username.trim(), ...(password && { password }) }
  return {
    mechanism,
    username: username.trim(),
    oauth: {
      token_url: fields.tokenUrl.trim(),
      client_id: fields.clientId.trim(),
      scope: fields.scope.trim() || null,
      ...{ grant: fields.grant, client_auth: fields.clientAuth },
      ...(clientSecret && { client_secret: clientSecret }),
      ...(refreshToken && fields.grant === 'refresh_token' && { refresh_token: refreshToken }),
    },
  }
}
