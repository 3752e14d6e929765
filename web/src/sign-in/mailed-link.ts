/** A link that the service has mailed: its purpose, and its token, which follows `#` and so is in no request. */
export interface MailedLink {
  purpose: 'invitation' | 'reset'
  token: string
}

/** Reads the fragment of a page's address; null without a mailed link. */
export function readMailedLink(hash: string): MailedLink | null {
  const [, purpose, token] = /^#(invitation|reset)=([\w-]{1,100})$/.exec(hash) ?? []
  return token === undefined ? null : { purpose: purpose as MailedLink['purpose'], token }
}
