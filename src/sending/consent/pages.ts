/** The pages of a list: its form, and what the link of a confirmation mail leads to. */
import { escapeHtml, postButton, smallPage } from '../../platform/http/answer/pages.ts'
import type { List } from '../lists/list.ts'
import type { Page, PageOwner } from '../tracking/page-template.ts'
import { fill, type PageLanguage } from '../tracking/page-texts.ts'
import { maskAddress } from '../tracking/unsubscribe-pages.ts'
import type { Asked } from './confirmations.ts'
import { nameOf } from './mail-text.ts'

const named = (list: List) => `<strong><bdi>${escapeHtml(nameOf(list))}</bdi></strong>`

const values = ({ list, address }: Asked) => ({
  list: named(list),
  who: `<strong>${escapeHtml(maskAddress(address))}</strong>`,
})

/** Names of the pages that a list has. */
export const LIST_PAGES = ['form', 'sent', 'confirm', 'confirmed', 'declined'] as const

const pageOf = (
  name: (typeof LIST_PAGES)[number],
  list: List,
  { lang }: PageLanguage,
  title: string,
  parts: readonly string[],
  address = '',
): Page => ({
  ...{ name, lang, title, parts },
  forms: parts.filter((part) => /^<form|^<p class="fault"/.test(part)),
  about: {
    ...{ list_title: nameOf(list), list_address: list.address },
    address: address === '' ? '' : maskAddress(address),
  },
})

/** Whose template the pages of a list have. */
export const pageOwner = ({ accountId, domainName, pageTemplate }: List): PageOwner => ({
  ...{ accountId, domainName, template: pageTemplate },
})

const joinTitle = (list: List, { texts }: PageLanguage) =>
  fill(texts.join, { list: `<bdi>${escapeHtml(nameOf(list))}</bdi>` })

/** `fault`: what was entered is no address; it is shown again. */
export function formPage(list: List, language: PageLanguage, fault: { given: string } | null): Page {
  const { texts } = language
  const described = fault ? ' aria-invalid="true" aria-describedby="fault"' : ''
  const value = fault ? ` value="${escapeHtml(fault.given)}"` : ''
  return pageOf('form', list, language, joinTitle(list, language), [
    ...(list.description ? [`<p><bdi>${escapeHtml(list.description)}</bdi></p>`] : []),
    ...(fault ? [`<p class="fault" id="fault" role="alert">${texts.badAddress}</p>`] : []),
    `<form method="post">
<label class="field"><span>${texts.address}</span><input type="email" name="email" autocomplete="email" maxlength="254" required${described}${value}></label>
<button type="submit">${texts.subscribe}</button></form>`,
    `<p class="soft">${texts.joinHint}</p>`,
  ])
}

/** The same for every address. */
export const sentPage = (list: List, language: PageLanguage): Page =>
  pageOf('sent', list, language, language.texts.checkMail, [`<p>${language.texts.checkMailHint}</p>`])

type Make = (asked: Asked, language: PageLanguage) => Page

export const confirmPage: Make = (asked, language) => {
  const { texts } = language
  const parts = [
    `<p>${fill(texts.confirmAsk, values(asked))}</p>`,
    postButton(texts.confirm, { action: 'confirm' }),
    postButton(texts.decline, { action: 'decline', quiet: true }),
    `<p class="soft">${texts.untouched}</p>`,
  ]
  return pageOf('confirm', asked.list, language, joinTitle(asked.list, language), parts, asked.address)
}

export const confirmedPage: Make = (asked, language) => {
  const { confirmed, confirmedHint } = language.texts
  const parts = [`<p>${fill(confirmedHint, values(asked))}</p>`]
  return pageOf('confirmed', asked.list, language, confirmed, parts, asked.address)
}

export const declinedPage: Make = (asked, language) => {
  const { declined, declinedHint } = language.texts
  const parts = [`<p>${fill(declinedHint, values(asked))}</p>`]
  return pageOf('declined', asked.list, language, declined, parts, asked.address)
}

/** Used, too old, foreign or invented: one page, so that nothing is learned by guessing. */
export const voidPage = ({ lang, texts }: PageLanguage) =>
  smallPage(texts.voidLink, [`<p>${texts.voidHint}</p>`], lang)

/** The form as plain HTML for other sites; `url`: of the hosted form. */
export function embeddedForm(url: string, { lang, texts }: PageLanguage): string {
  return `<form method="post" action="${escapeHtml(url)}" lang="${lang}">
  <label>${texts.address} <input type="email" name="email" autocomplete="email" maxlength="254" required></label>
  <button type="submit">${texts.subscribe}</button>
  <p>${texts.joinHint}</p>
</form>
`
}
