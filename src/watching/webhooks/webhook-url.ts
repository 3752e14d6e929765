/**
 * Webhook URLs with user info, `https://user:password@host/path`, which is sent as Basic authentication (RFC 7617).
 *
 * 1. A registration stores the URL with the secret part masked, and the user info sealed in another column.
 * 2. Everything else (rows of the queue, attempts, logs) uses only the masked URL. URLs are compared in this form: two
 *    that differ only in their password are one webhook.
 * 3. An attempt calls the URL without user info, and adds the Authorization field.
 */
import type { Sealer } from '../../platform/store/secrets/sealing.ts'

const MASK = '****'
const PURPOSE = 'webhook-credentials'
/** Scheme, user info up to the last at sign of the authority, and the rest. The URL parser handles unusual forms. */
const WITH_USER_INFO = /^(https?:[/\\]*)([^/?#\\]*)@(.*)$/is

/** `user:password` as written in the URL, or only `user`; null without any. */
export function userInfoOf(url: string): string | null {
  return WITH_USER_INFO.exec(url)?.[2] || null
}

/** The URL as it may be shown: with the password masked, or the user if there is no password. Others are unchanged. */
export function maskedUrl(url: string): string {
  return withUserInfo(url, (userInfo) => {
    const colon = userInfo.indexOf(':')
    return `${colon < 0 ? MASK : `${userInfo.slice(0, colon)}:${MASK}`}@`
  })
}

/** The URL without user info, which is the one to call. */
export const bareUrl = (url: string): string => withUserInfo(url, () => '')

/** The masked URL with its user info restored. */
export const fullUrl = (masked: string, userInfo: string | null): string =>
  userInfo === null ? masked : withUserInfo(masked, () => `${userInfo}@`)

/** Value of the Authorization field, RFC 7617 §2. */
export function basicAuthorization(userInfo: string): string {
  const [user = '', ...password] = userInfo.split(':')
  const pair = `${decoded(user)}:${decoded(password.join(':'))}`
  return `Basic ${Buffer.from(pair).toString('base64')}`
}

/** The header field for the user info of a URL; none without any. */
export const authorization = (userInfo: string | null): Record<string, string> =>
  userInfo === null ? {} : { authorization: basicAuthorization(userInfo) }

/** For the column next to the masked URL. */
export const sealUserInfo = (sealer: Sealer, url: string): Uint8Array | null => {
  const userInfo = userInfoOf(url)
  return userInfo === null ? null : sealer.seal(PURPOSE, userInfo)
}

/** @throws if the bytes were changed, or sealed with another secret */
export const openUserInfo = (sealer: Sealer, sealed: Uint8Array | null): string | null =>
  sealed === null ? null : sealer.open(PURPOSE, sealed).toString()

function withUserInfo(url: string, replace: (userInfo: string) => string): string {
  const match = WITH_USER_INFO.exec(url)
  if (match === null) return url
  const [, scheme = '', userInfo = '', rest = ''] = match
  return `${scheme}${userInfo === '' ? '' : replace(userInfo)}${rest}`
}

/** Percent-decoded; unchanged if the encoding is invalid. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
