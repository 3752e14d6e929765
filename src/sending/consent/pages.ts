/** The pages of a list: its form, and what the link of a confirmation mail leads to. */
import { escapeHtml, postButton, smallPage } from '../../platform/http/answer/pages.ts'
import type { List } from '../lists/list.ts'
import { fill, type PageLanguage } from '../tracking/page-texts.ts'
import { maskAddress } from '../tracking/unsubscribe-pages.ts'
import type { Asked } from './confirmations.ts'
import { nameOf } from './mail-text.ts'

const named = (list: List) => `<strong><bdi>${escapeHtml(nameOf(list))}</bdi></strong>`

const values = ({ list, address }: Asked) => ({
  list: named(list),
  who: `<strong>${escapeHtml(maskAddress(address))}</strong>`,
})

/** `fault`: what was entered is no address; it is shown again. */
export function formPage(list: List, { lang, texts }: PageLanguage, fault: { given: string } | null): string {
  const described = fault ? ' aria-invalid="true" aria-describedby="fault"' : ''
  const value = fault ? ` value="${escapeHtml(fault.given)}"` : ''
  return smallPage(
    fill(texts.join, { list: `<bdi>${escapeHtml(nameOf(list))}</bdi>` }),
    [
      ...(list.description ? [`<p><bdi>${escapeHtml(list.description)}</bdi></p>`] : []),
      ...(fault ? [`<p class="fault" id="fault" role="alert">${texts.badAddress}</p>`] : []),
      `<form method="post">
<label class="field"><span>${texts.address}</span><input type="email" name="email" autocomplete="email" maxlength="254" required${described}${value}></label>
<button type="submit">${texts.subscribe}</button></form>`,
      `<p class="soft">${texts.joinHint}</p>`,
    ],
    lang,
  )
}

/** The same for every address. */
export const sentPage = ({ lang, texts }: PageLanguage) =>
  smallPage(texts.checkMail, [`<p>${texts.checkMailHint}</p>`], lang)

export const confirmPage = (asked: Asked, { lang, texts }: PageLanguage) =>
  smallPage(
    fill(texts.join, { list: `<bdi>${escapeHtml(nameOf(asked.list))}</bdi>` }),
    [
      `<p>${fill(texts.confirmAsk, values(asked))}</p>`,
      postButton(texts.confirm, { action: 'confirm' }),
      postButton(texts.decline, { action: 'decline', quiet: true }),
      `<p class="soft">${texts.untouched}</p>`,
    ],
    lang,
  )

export const confirmedPage = (asked: Asked, { lang, texts }: PageLanguage) =>
  smallPage(texts.confirmed, [`<p>${fill(texts.confirmedHint, values(asked))}</p>`], lang)

export const declinedPage = (asked: Asked, { lang, texts }: PageLanguage) =>
  smallPage(texts.declined, [`<p>${fill(texts.declinedHint, values(asked))}</p>`], lang)

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
