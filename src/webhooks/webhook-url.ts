/**
 * URLs of webhooks with user info, `https://user:password@host/path`: it is sent as Basic authentication (RFC 7617).
 *
 * 1. A registration keeps the URL with the secret part masked, and the user info sealed beside it.
 * 2. Everything else (rows of the queue, attempts, logs) knows the masked URL only, which is also what URLs are compared
 *    by: two that differ in their password are one webhook.
 * 3. An attempt calls the URL without user info, and adds the Authorization field.
 */
import type { Sealer } from '../store/sealing.ts'

const MASK = '****'
const PURPOSE = 'webhook-credentials'
/** Scheme and authority up to the last at sign in it; the rest. Anything stranger is left to the URL parser. */
const WITH_USER_INFO = /^(https?:[/\\]*)([^/?#\\]*)@(.*)$/is

/** `user:password` of a URL as it is written there, or only `user`; null without any. */
export function userInfoOf(url: string): string | null {
  return WITH_USER_INFO.exec(url)?.[2] || null
}

/** The URL as people may see it: the password masked, or the user where there is only that. Others stay as they are. */
export function maskedUrl(url: string): string {
  return withUserInfo(url, (userInfo) => {
    const colon = userInfo.indexOf(':')
    return `${colon < 0 ? MASK : `${userInfo.slice(0, colon)}:${MASK}`}@`
  })
}

/** The URL that is called: without user info. */
export const bareUrl = (url: string): string => withUserInfo(url, () => '')

/** The masked URL with its user info in place again. */
export const fullUrl = (masked: string, userInfo: string | null): string =>
  userInfo === null ? masked : withUserInfo(masked, () => `${userInfo}@`)

/** Value of the Authorization field, RFC 7617 §2. */
export function basicAuthorization(userInfo: string): string {
  const [user = '', ...password] = userInfo.split(':')
  const pair = `${decoded(user)}:${decoded(password.join(':'))}`
  return `Basic ${Buffer.from(pair).toString('base64')}`
}

/** For the column beside the masked URL. */
export const sealUserInfo = (sealer: Sealer, url: string): Uint8Array | null => {
  const userInfo = userInfoOf(url)
  return userInfo === null ? null : sealer.seal(PURPOSE, userInfo)
}

/** @throws when the bytes were changed, or sealed under another secret */
export const openUserInfo = (sealer: Sealer, sealed: Uint8Array | null): string | null =>
  sealed === null ? null : sealer.open(PURPOSE, sealed).toString()

function withUserInfo(url: string, replaced: (userInfo: string) => string): string {
  const match = WITH_USER_INFO.exec(url)
  if (match === null) return url
  const [, scheme = '', userInfo = '', rest = ''] = match
  return `${scheme}${userInfo === '' ? '' : replaced(userInfo)}${rest}`
}

/** Percent-decoded; as it is where that is no encoding. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
