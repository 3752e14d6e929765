/**
 * Tracking of outgoing mail (tracking.md rules 1 to 8 and 11 to 15): which settings apply to a copy, which host its
 * links use, and what the links contain. rewrite.ts puts them into the parts; visit-routes.ts serves them.
 *
 * With everything off and no variable in the message there is no `Tracking`, and the copy is unchanged.
 */

import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import type { TrackedCopy, Tracker, Tracking } from '../../mail/compose/tracker.ts'
import { substitute, UNSUBSCRIBE_VARIABLES, type UnsubscribeVariable } from '../../mail/record/variables.ts'
import { trackingHost } from '../domains/dns/dns-records.ts'
import type { Domain } from '../domains/domain.ts'
import type { StoredLinks } from './links/links.ts'
import { rewriteParts } from './links/rewrite.ts'
import { type Tokens, UNSUBSCRIBE_PREFIX, type Unsubscription } from './links/tokens.ts'
import {
  isOnTopic,
  type Preferences,
  type TrackingDirectory,
  type TrackingSettings,
  topicTags,
} from './tracking-settings.ts'

export interface TrackerParts {
  settings: Pick<TrackingDirectory, 'get'>
  tokens: Tokens
  links: Pick<StoredLinks, 'keep'>
  /** Scheme and host for domains whose tracking record is not valid; null: their mail gets no tracking links. */
  fallbackUrl: string | null
  /** Whether this tracking host has a valid certificate. */
  certificateActive(host: string): Promise<boolean>
  /** A proxy in front of us terminates TLS: https works without a certificate of our own. */
  tlsExternal: boolean
}

/** For a rewritten link; a longer target is stored (tracking.md section 3). */
const LINK_LENGTH_MAX = 512

export function createTracker(parts: TrackerParts): Tracker {
  const tracked = (copy: TrackedCopy, domain: TrackingSettings): MaybePromise<Tracking | null> => {
    const settings = settingsOf(copy, domain)
    const { opens, clicks, unsubscribe } = settings
    const textsStay = !opens && clicks === 'no' && !unsubscribe && !copy.usesVariable
    const offersOneClick = copy.options.listUnsubscribe ?? (copy.isBulk && settings.unsubscribeOnBulk)
    if (textsStay && !offersOneClick) return null
    return baseUrl(parts, copy.domain).then((base) => {
      // RFC 8058 §3.1: one click needs https.
      const addsOneClick = offersOneClick && base?.startsWith('https:') === true
      if (textsStay && !addsOneClick) return null
      return base === null
        ? withoutHost(parts, copy)
        : trackingOf(parts, copy, { settings, base, textsStay, addsOneClick })
    })
  }
  return {
    trackingOf: (copy) =>
      whenKnown(parts.settings.get(copy.domain.id), (settings) => tracked(copy, settings)),
  }
}

/** Options of the message override those of the domain (messages.md rule 34). */
function settingsOf({ options }: TrackedCopy, domain: TrackingSettings): TrackingSettings {
  const { trackClicks, trackOpens, pixelAtTop } = options
  return {
    ...domain,
    opens: trackOpens ?? domain.opens,
    opensAtTop: pixelAtTop ?? domain.opensAtTop,
    clicks:
      trackClicks === null
        ? domain.clicks
        : trackClicks === 'htmlonly'
          ? 'htmlonly'
          : trackClicks
            ? 'yes'
            : 'no',
  }
}

/** The base URL of a domain's links, without a final slash (rules 11 and 12). */
export async function baseUrl(
  parts: Pick<TrackerParts, 'fallbackUrl' | 'tlsExternal' | 'certificateActive'>,
  domain: Domain,
): Promise<string | null> {
  if (!domain.trackingValid) return parts.fallbackUrl
  const host = trackingHost(domain)
  const secure = domain.webScheme === 'https' && (parts.tlsExternal || (await parts.certificateActive(host)))
  return `${secure ? 'https' : 'http'}://${host}`
}

interface CopyPlan {
  settings: TrackingSettings
  base: string
  textsStay: boolean
  addsOneClick: boolean
}

function trackingOf(
  parts: TrackerParts,
  copy: TrackedCopy,
  { settings, base, textsStay, addsOneClick }: CopyPlan,
): Tracking {
  const { opens, opensAtTop, clicks, unsubscribe, preferences } = settings
  const { tokens } = parts
  const variable = variablesOf(copy, {
    url: (scope) => `${base}/u/${tokens.unsubscribe(unsubscription(copy, scope, preferences))}`,
    address: (scope) => unsubscribeAddress(tokens, copy, scope),
  })
  const fillFooter = (footer: string) =>
    unsubscribe ? substitute(footer, (name) => (isVariable(name) ? variable(name) : null)) : ''
  return {
    textsStay,
    variable,
    rewrite: (texts, personal) =>
      rewriteParts(texts, {
        personal,
        clicks,
        pixel: opens && texts.html !== null ? pixelOf(`${base}/o/${tokens.open(copy.deliveryId)}`) : null,
        pixelAtTop: opensAtTop,
        htmlFooter: fillFooter(settings.htmlFooter),
        textFooter: fillFooter(settings.textFooter),
        ownHosts: ownHosts(parts, copy.domain),
        linksTo: (urls) => linksTo(parts, copy, base, urls),
      }),
    headers(bodyUsesVariable) {
      if (copy.options.listUnsubscribe === false) return []
      const isAsked = unsubscribe || bodyUsesVariable
      if (!isAsked && !addsOneClick) return []
      const names = fieldVariables(copy, preferences)
      const url = variable(names[0])
      return [
        // Mail of a domain that asked for nothing may lead to another server than this one.
        ['List-Unsubscribe', isAsked ? `<${url}>, <${mailtoOf(variable(names[1]))}>` : `<${url}>`],
        ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
      ]
    },
  }
}

/** The variables of List-Unsubscribe: one click leaves the list, the topic where the mail is on one, or all mail. */
function fieldVariables(copy: TrackedCopy, preferences: Preferences) {
  if (copy.listSid !== null)
    return ['mailing_list_unsubscribe_url', 'mailing_list_unsubscribe_address'] as const
  return isOnTopic(preferences, copy.tags)
    ? (['tag_unsubscribe_url', 'tag_unsubscribe_email'] as const)
    : (['unsubscribe_url', 'unsubscribe_email'] as const)
}

/** Without a host for links the message stays as it is; its unsubscribe variables still work, by mail. */
function withoutHost({ tokens }: TrackerParts, copy: TrackedCopy): Tracking {
  const address = (scope: Unsubscription['scope']) => unsubscribeAddress(tokens, copy, scope)
  return {
    textsStay: false,
    variable: variablesOf(copy, { url: (scope) => `mailto:${address(scope)}`, address }),
    rewrite: async (texts) => texts,
    headers: () => [],
  }
}

const mailtoOf = (address: string) => (address.startsWith('mailto:') ? address : `mailto:${address}`)

const isVariable = (name: string): name is UnsubscribeVariable =>
  (UNSUBSCRIBE_VARIABLES as readonly string[]).includes(name)

type Scope = Unsubscription['scope']

/** The values of the variables for one copy (rule 13), each computed once. */
function variablesOf(
  copy: TrackedCopy,
  make: { url(scope: Scope): string; address(scope: Scope): string },
): (name: UnsubscribeVariable) => string {
  const known = new Map<UnsubscribeVariable, string>()
  const tags = copy.tags.length > 0 ? 'tags' : 'domain'
  const list = copy.listSid === null ? 'domain' : 'list'
  const valueFor = (name: UnsubscribeVariable): string => {
    switch (name) {
      case 'unsubscribe_url':
        return make.url('domain')
      case 'tag_unsubscribe_url':
        return make.url(tags)
      case 'mailing_list_unsubscribe_url':
        return make.url(list)
      case 'mailing_list_unsubscribe_address':
        return make.address(list)
      case 'unsubscribe_email':
        return `mailto:${make.address('domain')}`
      case 'tag_unsubscribe_email':
        return `mailto:${make.address(tags)}`
    }
  }
  return (name) => {
    const value = known.get(name) ?? valueFor(name)
    known.set(name, value)
    return value
  }
}

/** Only what the scope needs, because tags make a link long. */
function unsubscription(copy: TrackedCopy, scope: Scope, preferences: Preferences): Unsubscription {
  return {
    scope,
    accountId: copy.accountId,
    domainId: copy.domain.id,
    recipient: copy.recipient,
    tags: scope === 'tags' ? topicTags(preferences, copy.tags) : [],
    listSid: scope === 'list' ? copy.listSid : null,
    deliveryId: copy.deliveryId,
  }
}

const unsubscribeAddress = (tokens: Tokens, copy: TrackedCopy, scope: Scope) =>
  `${UNSUBSCRIBE_PREFIX}${tokens.unsubscribeAddress(copy.deliveryId, scope)}@${copy.domain.name}`

const pixelOf = (url: string) => `<img src="${url}" width="1" height="1" alt="">`

/** Both hosts: a link created while the domain's record was not valid is ours too. */
function ownHosts({ fallbackUrl }: TrackerParts, domain: Domain): string[] {
  return [trackingHost(domain).toLowerCase(), ...(fallbackUrl === null ? [] : [new URL(fallbackUrl).host])]
}

async function linksTo(
  { tokens, links }: TrackerParts,
  { accountId, deliveryId }: TrackedCopy,
  base: string,
  urls: readonly string[],
): Promise<Map<string, string>> {
  const made = new Map<string, string>()
  const long: string[] = []
  for (const url of urls) {
    const link = `${base}/c/${tokens.click(deliveryId, { url })}`
    if (link.length > LINK_LENGTH_MAX) long.push(url)
    else made.set(url, link)
  }
  if (long.length > 0) {
    const ids = await links.keep(accountId, long)
    long.forEach((url, at) => {
      made.set(url, `${base}/c/${tokens.click(deliveryId, { linkId: ids[at] as string })}`)
    })
  }
  return made
}
