/**
 * The pages that recipients see.
 *
 * They show the address in a masked form: its owner recognises it, and a stranger to whom the message was forwarded does
 * not learn it.
 */
import { escapeHtml, postButton } from '../../platform/http/answer/pages.ts'
import type { Page } from './page-template.ts'
import { ENGLISH, fill, type PageLanguage, type PageTexts } from './page-texts.ts'

/** What a link unsubscribes from, as a page describes it. */
export interface Subject {
  /** Bare address; shown masked. */
  recipient: string
  scope: 'domain' | 'tags' | 'list'
  /** Name of the sending domain or address of the list; null: it no longer exists. */
  sender: string | null
}

type Make = (subject: Subject, language?: PageLanguage) => Page

const askPage: Make = (subject, language = ENGLISH) => {
  const { texts } = language
  return pageOf('unsubscribe', subject, language, texts.unsubscribe, [
    `<p>${sentence(texts.ask, subject, texts, true)}</p>`,
    postButton(texts.unsubscribe, { action: 'unsubscribe' }),
    `<p class="soft">${texts.untouched}</p>`,
  ])
}

const donePage: Make = (subject, language = ENGLISH) => {
  const { texts } = language
  return pageOf('unsubscribed', subject, language, texts.unsubscribed, [
    `<p>${sentence(texts.noMore, subject, texts)}</p>`,
    postButton(texts.undo, { action: 'resubscribe', quiet: true }),
    `<p class="soft">${texts.onItsWay}</p>`,
  ])
}

const undonePage: Make = (subject, language = ENGLISH) => {
  const { texts } = language
  return pageOf('resubscribed', subject, language, texts.subscribedAgain, [
    `<p>${sentence(texts.again, subject, texts)}</p>`,
    postButton(texts.unsubscribe, { action: 'unsubscribe', quiet: true }),
  ])
}

/** The sender, not this link, unsubscribed the address. */
const keptPage: Make = (subject, language = ENGLISH) => {
  const { texts } = language
  const kept = sentence(texts.kept, subject, texts)
  return pageOf('still_unsubscribed', subject, language, texts.stillUnsubscribed, [`<p>${kept}</p>`])
}

export const PAGES = { ask: askPage, done: donePage, undone: undonePage, kept: keptPage } as const

/** Names of the pages behind unsubscribe links. */
export const UNSUBSCRIBE_PAGES = [
  'unsubscribe',
  'unsubscribed',
  'resubscribed',
  'still_unsubscribed',
  'preferences',
] as const

const pageOf = (
  name: (typeof UNSUBSCRIBE_PAGES)[number],
  { recipient, sender }: Subject,
  { lang }: PageLanguage,
  title: string,
  parts: readonly string[],
): Page => ({
  ...{ name, lang, title, parts },
  forms: parts.filter((part) => /^<form|^<p role=/.test(part)),
  about: { sender: sender ?? '', address: maskAddress(recipient) },
})

/** A topic as the preference page shows it. */
export interface ShownTopic {
  /** Value of its checkbox. */
  id: string
  title: string
  isOn: boolean
  /** The sender, not the person, switched it off: only the sender can switch it on. */
  isFixed: boolean
}

/** What the person gets, with a checkbox for each topic; `isSaved`: a choice was just stored. */
export function preferencePage(
  subject: Subject,
  choice: {
    topics: readonly ShownTopic[]
    /** Whether any mail of the sender is sent. */
    all: Pick<ShownTopic, 'isOn' | 'isFixed'>
    isSaved: boolean
  },
  language: PageLanguage,
): Page {
  const { texts } = language
  const { topics, all, isSaved } = choice
  const status = isSaved ? [`<p role="status">${texts.saved}</p>`] : []
  const note = `<p class="soft">${texts.untouched}</p>`
  const parts = !all.isOn
    ? [
        `<p>${sentence(texts.allIsOff, subject, texts)}</p>`,
        ...(all.isFixed
          ? [`<p>${sentence(texts.kept, subject, texts)}</p>`]
          : [postButton(texts.undo, { action: 'resubscribe-all', quiet: true }), note]),
      ]
    : [
        `<p>${sentence(texts.preferencesOf, subject, texts)}</p>`,
        `<form method="post"><input type="hidden" name="action" value="preferences">
<fieldset><legend>${texts.topics}</legend>
${topics.map((topic) => topicField(topic, texts)).join('\n')}
</fieldset>
<button type="submit">${texts.save}</button></form>`,
        postButton(texts.allOff, { action: 'unsubscribe-all', quiet: true }),
        note,
      ]
  return pageOf('preferences', subject, language, texts.preferences, [...status, ...parts])
}

/** `shown` names the topics that the person saw: one that came later keeps its state. */
function topicField({ id, title, isOn, isFixed }: ShownTopic, texts: PageTexts): string {
  const box = `<input type="checkbox" name="on" value="${id}"${isOn ? ' checked' : ''}${isFixed ? ' disabled' : ''}>`
  const note = isFixed ? ` <span class="soft">(${texts.fixed})</span>` : ''
  return `<label>${box} <span><bdi>${escapeHtml(title)}</bdi>${note}</span></label>${
    isFixed ? '' : `<input type="hidden" name="shown" value="${id}">`
  }`
}

/** `all`: the mail is named as all of it. */
function sentence(text: string, subject: Subject, texts: PageTexts, all = false): string {
  const from = subject.sender ? `<strong>${escapeHtml(subject.sender)}</strong>` : texts.thisSender
  return fill(text, {
    who: `<strong>${masked(subject)}</strong>`,
    from,
    what: whatOf(subject, from, texts, all),
  })
}

function whatOf({ scope, sender }: Subject, from: string, texts: PageTexts, all: boolean): string {
  if (scope === 'list') return sender ? fill(texts.listMail, { from }) : texts.anyListMail
  return fill(scope === 'tags' ? texts.mailOfKind : all ? texts.allMail : texts.mail, { from })
}

/** `a***@example.org`: its owner recognises it, a stranger does not learn it. */
export function maskAddress(address: string): string {
  const at = address.lastIndexOf('@')
  const [first = ''] = address
  if (at < 0) return '***'
  return at > 1 ? `${first}***${address.slice(at)}` : `***${address.slice(at)}`
}

const masked = ({ recipient }: Subject) => escapeHtml(maskAddress(recipient))
