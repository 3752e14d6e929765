/**
 * The pages that recipients see.
 *
 * They show the address in a masked form: its owner recognises it, and a stranger to whom the message was forwarded does
 * not learn it.
 */
import { escapeHtml, postButton, smallPage } from '../../platform/http/answer/pages.ts'

/** What a link unsubscribes from, as a page describes it. */
export interface Subject {
  /** Bare address; shown masked. */
  recipient: string
  scope: 'domain' | 'tags' | 'list'
  /** Name of the sending domain or address of the list; null: it no longer exists. */
  sender: string | null
}

const askPage = (subject: Subject) =>
  smallPage('Unsubscribe', [
    `<p>Stop ${mailPhrase(subject)} to <strong>${masked(subject)}</strong>?</p>`,
    postButton('Unsubscribe', { action: 'unsubscribe' }),
    '<p class="soft">Nothing changes until you press the button.</p>',
  ])

const donePage = (subject: Subject) =>
  smallPage('You are unsubscribed', [
    `<p><strong>${masked(subject)}</strong> gets no more ${shortPhrase(subject)}.</p>`,
    postButton('Undo: subscribe again', { action: 'resubscribe', quiet: true }),
    '<p class="soft">Mail that is already on its way may still arrive.</p>',
  ])

const undonePage = (subject: Subject) =>
  smallPage('You are subscribed again', [
    `<p><strong>${masked(subject)}</strong> gets ${shortPhrase(subject)} again.</p>`,
    postButton('Unsubscribe', { action: 'unsubscribe', quiet: true }),
  ])

/** The sender, not this link, unsubscribed the address. */
const keptPage = (subject: Subject) =>
  smallPage('Still unsubscribed', [
    `<p><strong>${masked(subject)}</strong> was not unsubscribed with this link, so it cannot be undone here.
Ask the sender to be added again.</p>`,
  ])

export const PAGES = { ask: askPage, done: donePage, undone: undonePage, kept: keptPage } as const

function mailPhrase({ scope, sender }: Subject): string {
  if (scope === 'list')
    return `mail of the mailing list${sender ? ` <strong>${escapeHtml(sender)}</strong>` : ''}`
  const from = sender ? ` from <strong>${escapeHtml(sender)}</strong>` : ' from this sender'
  return scope === 'tags' ? `mail of this kind${from}` : `all mail${from}`
}

const shortPhrase = (subject: Subject) => mailPhrase(subject).replace(/^all mail/, 'mail')

/** `a***@example.org`: its owner recognises it, a stranger does not learn it. */
export function maskAddress(address: string): string {
  const at = address.lastIndexOf('@')
  const [first = ''] = address
  if (at < 0) return '***'
  return at > 1 ? `${first}***${address.slice(at)}` : `***${address.slice(at)}`
}

const masked = ({ recipient }: Subject) => escapeHtml(maskAddress(recipient))
