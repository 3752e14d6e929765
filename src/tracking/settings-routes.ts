/** Tracking settings over HTTP (tracking.md K1-K4). */
import { BadRequest } from '../base/errors.ts'
import { invalidChoice } from '../base/values.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import { ownDomain } from '../domains/routes.ts'
import { type Operation, operation } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import type { TrackingDirectory, TrackingSettings } from './tracking-settings.ts'

const MESSAGE = 'Domain tracking settings have been updated'
const FOOTER_BYTES_MAX = 10 * 1024
const PATH = '/v3/domains/{name}/tracking'
const READ = { area: 'domains', access: 'read' } as const
const WRITE = { area: 'domains', access: 'write' } as const
const COMMON = { tag: 'Tracking', rateLimit: 'domains' } as const
const CHANGED = { 200: { description: 'The settings as they are now' } } as const

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

export function trackingSettingsRoutes(parts: {
  domains: DomainDirectory
  tracking: TrackingDirectory
}): Operation[] {
  const { domains, tracking } = parts
  return [
    operation({
      ...COMMON,
      method: 'GET',
      path: PATH,
      id: 'readTracking',
      summary: 'Read what is tracked for a domain',
      auth: READ,
      params: [],
      responses: { 200: { description: 'The settings' } },
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
    operation({
      ...COMMON,
      method: 'PUT',
      path: `${PATH}/open`,
      id: 'updateOpenTracking',
      summary: 'Switch open tracking of a domain',
      auth: WRITE,
      params: [
        { name: 'active', type: 'boolean', description: 'Track opens' },
        { name: 'place_at_the_top', type: 'boolean', description: 'Pixel at the beginning of the html' },
      ],
      responses: CHANGED,
      async handler({ params, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const settings = await tracking.change(domain, {
          ...given('opens', params.booleanOr('active', [])),
          ...given('opensAtTop', params.boolean('place_at_the_top')),
        })
        return { message: MESSAGE, open: openView(settings) }
      },
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path: `${PATH}/click`,
      id: 'updateClickTracking',
      audit: { given: ['active'] },
      summary: 'Switch click tracking of a domain',
      auth: WRITE,
      params: [{ name: 'active', type: 'string', description: 'true, false, yes, no or htmlonly' }],
      responses: CHANGED,
      async handler({ params, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const active = params.booleanOr('active', ['htmlonly'])
        const clicks = active === true ? 'yes' : active === false ? 'no' : active
        return {
          message: MESSAGE,
          click: clickView(await tracking.change(domain, given('clicks', clicks))),
        }
      },
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path: `${PATH}/unsubscribe`,
      id: 'updateUnsubscribeTracking',
      summary: 'Switch unsubscribe links of a domain and set their footers',
      auth: WRITE,
      params: [
        { name: 'active', type: 'boolean', description: 'Add footers and List-Unsubscribe' },
        { name: 'html_footer', type: 'string', description: 'May be empty' },
        { name: 'text_footer', type: 'string', description: 'May be empty' },
        { name: 'on_bulk', type: 'boolean', description: 'Add List-Unsubscribe to bulk mail in any case' },
      ],
      responses: CHANGED,
      async handler({ params, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const settings = await tracking.change(domain, {
          ...given('unsubscribe', params.booleanOr('active', [])),
          ...given('htmlFooter', footerOf(params, 'html_footer')),
          ...given('textFooter', footerOf(params, 'text_footer')),
          ...given('unsubscribeOnBulk', params.boolean('on_bulk')),
        })
        return { message: MESSAGE, unsubscribe: unsubscribeView(settings) }
      },
    }),
  ]
}

/** @throws BadRequest over 10 KB, and for NUL, which PostgreSQL cannot store */
function footerOf(params: Params, name: 'html_footer' | 'text_footer'): string | undefined {
  const footer = params.given(name)
  if (footer !== undefined && Buffer.byteLength(footer) > FOOTER_BYTES_MAX)
    throw new BadRequest('Footer is too long')
  if (footer?.includes('\0')) throw invalidChoice(name, footer)
  return footer
}

/** The setting if it was given, else nothing, so that it stays unchanged. */
function given<K extends keyof TrackingSettings>(
  name: K,
  value: TrackingSettings[K] | undefined,
): Partial<TrackingSettings> {
  return value === undefined ? {} : { [name]: value }
}
