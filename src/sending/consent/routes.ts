/** How people come onto lists, and the trail of one address, over HTTP (consent.md). */
import { LANGUAGES } from '../../base/languages.ts'
import type { Of } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { invalidChoice } from '../../base/values.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { choiceParam, flagParam, integerParam, parsedParam } from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import { withPod } from '../../platform/store/pods/pod.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Domain } from '../domains/domain.ts'
import type { DomainDirectory } from '../domains/names/directory.ts'
import type { List } from '../lists/list.ts'
import type { Lists } from '../lists/service.ts'
import { keyOf } from '../lists/store.ts'
import { TRAIL_PER_ADDRESS_MAX } from '../lists/trail.ts'
import { line, templateParam } from '../templates/template-param.ts'
import type { PageTemplates } from '../tracking/page-template.ts'
import { TEXTS } from '../tracking/page-texts.ts'
import { embeddedForm, LIST_PAGES, pageOwner } from './pages.ts'
import { CONSENT_TRAIL, LIST_CONSENT } from './shapes.ts'

interface ConsentRouteParts {
  store: Store
  lists: Lists
  domains: Pick<DomainDirectory, 'byName'>
  pageBase(domain: Domain | null): Promise<string>
  pageTemplates: Pick<PageTemplates, 'check'>
}

const api = operationsOf({ tag: 'Mailing lists', auth: { area: 'lists' }, rateLimit: 'lists' })
const PATH = '/sendwright/v1/lists/{list}/consent'

const TITLE_LENGTH_MAX = 100
const URL_LENGTH_MAX = 2048
const EXPIRE_DAYS_MAX = 30

const PARAMS = {
  title: parsedParam(
    `What people call the list, at most ${TITLE_LENGTH_MAX} characters; empty: none`,
    (params, name) => line(params, name, TITLE_LENGTH_MAX),
  ),
  language: choiceParam('Language of the confirmation mail', LANGUAGES),
  confirm: flagParam('Ask added members first, unless the call says otherwise'),
  form: flagParam('Open the hosted form'),
  redirect_url: parsedParam('Where the form leads, http or https; empty: to a page of the service', urlOf),
  template: templateParam('Stored template of the confirmation mail; empty: the built-in text'),
  page_template: templateParam("Stored template of the list's pages; empty: the built-in pages"),
  expire_days: integerParam('Days for which a member may confirm', { min: 1, max: EXPIRE_DAYS_MAX }),
}

export function consentRoutes(parts: ConsentRouteParts): Operation[] {
  const { store, lists, domains, pageBase, pageTemplates } = parts

  async function view(list: List): Promise<Of<typeof LIST_CONSENT>> {
    const url = `${await pageBase(await domains.byName(list.domainName))}/subscribe/${withPod(store.pod, list.id)}`
    const language = { lang: list.language, texts: TEXTS[list.language] }
    return {
      ...{ title: list.title, language: list.language, confirm: list.isOptIn, form: list.isFormOpen },
      ...(list.isFormOpen && { form_url: url, form_html: embeddedForm(url, language) }),
      ...(list.formRedirect !== null && { redirect_url: list.formRedirect }),
      ...(list.confirmTemplate !== null && { template: list.confirmTemplate }),
      ...(list.pageTemplate !== null && { page_template: list.pageTemplate }),
      expire_days: list.confirmDays,
    }
  }

  return [
    api.get(PATH, {
      id: 'readListConsent',
      summary: 'Read how people come onto a mailing list',
      answers: { 200: LIST_CONSENT },
      handler: async ({ path, caller }) => view(await lists.own(caller.accountId, path.list)),
    }),
    api.put(PATH, {
      id: 'updateListConsent',
      audit: { given: ['title', 'language', 'redirect_url', 'template', 'page_template'] },
      summary: 'Ask members before they are subscribed, and open a form',
      params: PARAMS,
      answers: { 200: LIST_CONSENT },
      async handler({ input, path, caller }) {
        const list = await lists.own(caller.accountId, path.list)
        const { confirm, form, redirect_url, template, page_template, expire_days, ...same } = input()
        if (page_template !== undefined && page_template !== list.pageTemplate)
          await pageTemplates.check({ ...pageOwner(list), template: page_template }, LIST_PAGES)
        const changes = { isOptIn: confirm, isFormOpen: form, formRedirect: redirect_url }
        const mail = { confirmTemplate: template, pageTemplate: page_template, confirmDays: expire_days }
        return view(await lists.update(list, { ...same, ...changes, ...mail }))
      },
    }),
    api.get('/sendwright/v1/people/{address}/consent', {
      id: 'readConsentTrail',
      summary: 'How and when an address came onto lists, or left them',
      answers: { 200: CONSENT_TRAIL },
      handler: async ({ path, caller }) => ({
        items: await trailOf(store, caller.accountId, keyOf(path.address)),
      }),
    }),
  ]
}

async function trailOf(
  store: Store,
  accountId: string,
  key: string,
): Promise<Of<typeof CONSENT_TRAIL>['items']> {
  const rows = await store.db
    .selectFrom('consent_trail')
    .leftJoin('lists', 'lists.id', 'consent_trail.list_id')
    .selectAll('consent_trail')
    .select('lists.title as title')
    .where('consent_trail.account_id', '=', accountId)
    .where('consent_trail.address_key', '=', key)
    .orderBy('consent_trail.id', 'desc')
    .limit(TRAIL_PER_ADDRESS_MAX)
    .execute()
  return rows.map((row) => ({
    list: row.list_address ?? '',
    ...(row.title && { list_title: row.title }),
    domain: row.domain_name,
    ...(row.topic !== null && { topic: row.topic }),
    ...{ action: row.action, source: row.source, at: formatRfc3339(new Date(Number(row.at))) },
    ...(row.ip && { ip: row.ip }),
    ...(row.user_agent && { user_agent: row.user_agent }),
    ...(row.called_by !== null && { by: row.called_by }),
  }))
}

/** Null clears it. @throws BadRequest */
function urlOf(params: Params, name: string): string | null | undefined {
  const given = params.given(name)?.trim()
  if (!given) return given === '' ? null : undefined
  const url = URL.canParse(given) ? new URL(given) : null
  const isUsable =
    url && /^https?:$/.test(url.protocol) && /^[\x21-\x7e]+$/.test(given) && !url.username && !url.password
  if (!isUsable || given.length > URL_LENGTH_MAX) throw invalidChoice(name, given)
  return url.href
}
