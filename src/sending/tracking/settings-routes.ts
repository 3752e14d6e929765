/** Tracking settings over HTTP (tracking.md K1-K4). */
import { foreignJsonIn } from '../../base/foreign-json.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { invalidChoice, isPlainObject } from '../../base/values.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { flagParam, parsedParam } from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import { cleanTags } from '../../watching/tags/clean-tags.ts'
import type { Domain } from '../domains/domain.ts'
import { type DomainDirectory, ownDomain } from '../domains/names/directory.ts'
import type { ListStore } from '../lists/store.ts'
import { ALL_MAIL } from '../suppressions/given-records.ts'
import { templateParam } from '../templates/template-param.ts'
import type { PageTemplates } from './page-template.ts'
import {
  CLICK_CHANGED,
  DOMAIN_TOPICS,
  OPEN_CHANGED,
  TRACKING,
  UNSUBSCRIBE_CHANGED,
  UPDATED,
} from './shapes.ts'
import type { Topic, TrackingDirectory, TrackingSettings } from './tracking-settings.ts'
import { UNSUBSCRIBE_PAGES } from './unsubscribe-pages.ts'

const FOOTER_BYTES_MAX = 10 * 1024
const PATH = '/v3/domains/{name}/tracking'
const TOPICS_PATH = '/sendwright/v1/domains/{name}/topics'
/** What the page of topics sends must fit into a body of 4 KB. */
const TOPICS_MAX = 20
const TITLE_LENGTH_MAX = 100
/** Lists on the page, which shows those of the person. */
const LISTS_SHOWN_MAX = 1_000
const api = operationsOf({ tag: 'Tracking', auth: { area: 'domains' }, rateLimit: 'domains' })

const openView = (settings: TrackingSettings) => ({
  active: settings.opens,
  place_at_the_top: settings.opensAtTop,
})
const clickView = ({ clicks }: TrackingSettings) => ({
  active: clicks !== 'no',
  htmlonly: clicks === 'htmlonly',
})
const unsubscribeView = (settings: TrackingSettings) => ({
  active: settings.unsubscribe,
  html_footer: settings.htmlFooter,
  text_footer: settings.textFooter,
  // Only then: clients of the public API know three fields.
  ...(settings.unsubscribeOnBulk ? {} : { on_bulk: false }),
})

interface SettingsParts {
  domains: DomainDirectory
  tracking: TrackingDirectory
  lists: Pick<ListStore, 'titled'>
  pageTemplates: Pick<PageTemplates, 'check'>
}

export function trackingSettingsRoutes(parts: SettingsParts): Operation[] {
  return [...switchRoutes(parts), ...topicRoutes(parts)]
}

/** What is tracked: opens, clicks and unsubscribe links. */
function switchRoutes({ domains, tracking }: SettingsParts): Operation[] {
  return [
    api.get(PATH, {
      id: 'readTracking',
      summary: 'Read what is tracked for a domain',
      answers: { 200: TRACKING },
      async handler({ path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const settings = await tracking.get(domain.id)
        return {
          tracking: {
            open: openView(settings),
            click: clickView(settings),
            unsubscribe: unsubscribeView(settings),
            web_scheme: domain.webScheme,
          },
        }
      },
    }),
    api.put(`${PATH}/open`, {
      id: 'updateOpenTracking',
      summary: 'Switch open tracking of a domain',
      params: {
        active: switchParam('Track opens'),
        place_at_the_top: flagParam('Pixel at the beginning of the html'),
      },
      answers: { 200: OPEN_CHANGED },
      async handler({ input, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const { active: opens, place_at_the_top: opensAtTop } = input()
        return { message: UPDATED, open: openView(await tracking.change(domain, { opens, opensAtTop })) }
      },
    }),
    api.put(`${PATH}/click`, {
      id: 'updateClickTracking',
      audit: { given: ['active'] },
      summary: 'Switch click tracking of a domain',
      params: { active: parsedParam('true, false, yes, no or htmlonly', clicksOf) },
      answers: { 200: CLICK_CHANGED },
      async handler({ input, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const settings = await tracking.change(domain, { clicks: input().active })
        return { message: UPDATED, click: clickView(settings) }
      },
    }),
    api.put(`${PATH}/unsubscribe`, {
      id: 'updateUnsubscribeTracking',
      summary: 'Switch unsubscribe links of a domain and set their footers',
      params: {
        active: switchParam('Add footers and List-Unsubscribe'),
        html_footer: parsedParam('May be empty', footerOf),
        text_footer: parsedParam('May be empty', footerOf),
        on_bulk: flagParam('Add List-Unsubscribe to bulk mail in any case'),
      },
      answers: { 200: UNSUBSCRIBE_CHANGED },
      async handler({ input, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const given = input()
        const settings = await tracking.change(domain, {
          unsubscribe: given.active,
          htmlFooter: given.html_footer,
          textFooter: given.text_footer,
          unsubscribeOnBulk: given.on_bulk,
        })
        return { message: UPDATED, unsubscribe: unsubscribeView(settings) }
      },
    }),
  ]
}

/** The topics of a domain. */
function topicRoutes({ domains, tracking, lists, pageTemplates }: SettingsParts): Operation[] {
  const topicsView = async (domain: Domain, { preferences }: TrackingSettings) => ({
    active: preferences.isActive,
    topics: preferences.topics,
    ...(preferences.pageTemplate !== undefined && { page_template: preferences.pageTemplate }),
    lists: await lists.titled(domain.accountId, domain.name, LISTS_SHOWN_MAX),
  })
  return [
    api.get(TOPICS_PATH, {
      id: 'readTopics',
      summary: 'Read the topics that people choose from behind unsubscribe links',
      answers: { 200: DOMAIN_TOPICS },
      async handler({ path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        return topicsView(domain, await tracking.get(domain.id))
      },
    }),
    api.put(TOPICS_PATH, {
      id: 'updateTopics',
      audit: { given: ['topics', 'page_template'] },
      summary: 'Set the topics of a domain, and whether unsubscribe links lead to them',
      params: {
        active: switchParam('Unsubscribe links lead to a page of topics'),
        topics: parsedParam('All tags that are topics, each with a title', topicsOf, { type: 'json' }),
        page_template: templateParam(
          'Stored template of the pages behind unsubscribe links; empty: the built-in pages',
        ),
      },
      answers: { 200: DOMAIN_TOPICS },
      async handler({ input, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const { active, topics, page_template: template } = input()
        const { preferences } = await tracking.get(domain.id)
        if (template !== undefined && template !== preferences.pageTemplate)
          await pageTemplates.check(
            { accountId: domain.accountId, domainName: domain.name, template },
            UNSUBSCRIBE_PAGES,
          )
        const changed = {
          isActive: active ?? preferences.isActive,
          topics: topics ?? preferences.topics,
          pageTemplate: template === undefined ? preferences.pageTemplate : (template ?? undefined),
        }
        return topicsView(domain, await tracking.change(domain, { preferences: changed }))
      },
    }),
  ]
}

/** @throws BadRequest for anything but an array of up to 20 topics with different tags */
function topicsOf(params: Params, name: string): Topic[] | undefined {
  const given = params.value(name)
  if (given === undefined) return undefined
  const items = typeof given === 'string' ? foreignJsonIn(given) : given
  if (!Array.isArray(items)) throw new BadRequest(`Parameter '${name}' is not a valid JSON array`)
  if (items.length > TOPICS_MAX) throw new BadRequest(`A domain has at most ${TOPICS_MAX} topics`)
  const topics = items.map(topicOf)
  if (new Set(topics.map(({ tag }) => tag.toLowerCase())).size < topics.length)
    throw new BadRequest('Two topics have the same tag')
  return topics
}

function topicOf(item: unknown): Topic {
  const { tag, title } = isPlainObject(item) ? item : {}
  const [clean] = typeof tag === 'string' ? cleanTags([tag]) : []
  const text = typeof title === 'string' ? title.trim().toWellFormed() : ''
  const isTitle = text !== '' && text.length <= TITLE_LENGTH_MAX && !/[\u0000-\u001f\u007f]/.test(text)
  if (clean === undefined || clean === ALL_MAIL || !isTitle)
    throw new BadRequest(`A topic needs a tag, and a title of at most ${TITLE_LENGTH_MAX} characters`)
  return { tag: clean, title: text }
}

/** Other words are refused as those of a list. */
const switchParam = (description: string) =>
  parsedParam(description, (params, name) => params.booleanOr(name, []), { type: 'boolean' })

function clicksOf(params: Params, name: string): TrackingSettings['clicks'] | undefined {
  const active = params.booleanOr(name, ['htmlonly'])
  return active === true ? 'yes' : active === false ? 'no' : active
}

/** @throws BadRequest over 10 KB, and for NUL, which PostgreSQL cannot store */
function footerOf(params: Params, name: string): string | undefined {
  const footer = params.given(name)
  if (footer !== undefined && Buffer.byteLength(footer) > FOOTER_BYTES_MAX)
    throw new BadRequest('Footer is too long')
  if (footer?.includes('\0')) throw invalidChoice(name, footer)
  return footer
}
