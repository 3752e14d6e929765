/** The pages of the dashboard of which pictures are taken (docs/dashboard.md). */
import type { Page } from 'playwright-core'
import { untilQuiet } from '../../test/support/dashboard-pages.ts'
import type { TestService } from '../../test/support/service.ts'
import { activeUser } from '../../test/support/users.ts'

export interface PicturedPage {
  /** File name of the picture. */
  name: string
  path: string
  /** The first such link on the page of `path` is followed. */
  link?: RegExp
  /** What is done before the picture is taken. */
  open?: (page: Page, service: TestService) => Promise<void>
  /** The service captures its mail. */
  captured?: true
}

const DOMAIN = '/domains/shop.example.com'

const press = (name: string) => async (page: Page) => {
  await page.getByRole('button', { name }).first().click()
  await untilQuiet(page)
}

const rendered = (page: Page) => page.getByTitle('The template as it is sent').waitFor()

const newcomers = ['eva@example.com', 'finn@example.com']

/** The page as a user sees it, who is invited first; keys have no profile. */
async function asUser(page: Page, service: TestService): Promise<void> {
  const { cookie } = await activeUser(service, newcomers.shift() ?? 'gwen@example.com')
  const [name = '', value = ''] = cookie.split('=')
  await page.context().addCookies([{ name, value, url: service.url }])
  await page.goto(`${service.url}/settings/profile`)
  await page.getByRole('heading', { level: 1, name: 'Profile' }).waitFor()
  await untilQuiet(page)
}

export const PAGES: readonly PicturedPage[] = [
  // Before all others, which sign in.
  { name: 'audit-log', path: '/settings/audit' },
  { name: 'sign-in', path: '/' },
  { name: 'overview', path: '/overview' },
  { name: 'health', path: '/overview/health' },
  { name: 'inbox', path: '/', link: /^\/inbox\//, captured: true },
  { name: 'activity', path: '/activity' },
  {
    name: 'message',
    path: '/activity?q=late-bob%40people.example',
    link: /^\/activity\/[^?]+(?:@|%40)/,
    open: press('SMTP dialogue'),
  },
  { name: 'person', path: '/people/late-bob%40people.example' },
  { name: 'statistics', path: '/statistics' },
  { name: 'compose', path: '/sending/compose' },
  { name: 'templates', path: '/sending/templates?domain=shop.example.com' },
  { name: 'template', path: '/sending/templates/order-shipped?domain=shop.example.com', open: rendered },
  {
    name: 'template-blocks',
    path: '/sending/templates/spring-offer?domain=shop.example.com',
    open: async (page) => {
      await rendered(page)
      await press('Text: Spring is here')(page)
    },
  },
  { name: 'suppressions', path: '/sending/suppressions?domain=shop.example.com' },
  { name: 'lists', path: '/sending/lists' },
  { name: 'list', path: '/sending/lists/recipes%40news.example.com' },
  { name: 'scheduled', path: '/sending/scheduled' },
  { name: 'validation', path: '/sending/validation' },
  { name: 'validation-job', path: '/sending/validation/customers-2026' },
  { name: 'placement', path: '/sending/placement' },
  { name: 'placement-test', path: '/sending/placement', link: /^\/sending\/placement\/[^?]/ },
  { name: 'delivery', path: '/delivery' },
  { name: 'providers', path: '/delivery/providers' },
  { name: 'ips', path: '/delivery/ips' },
  { name: 'ip', path: '/delivery/ips/203.0.113.10' },
  { name: 'pools', path: '/delivery/pools' },
  { name: 'pool', path: '/delivery/pools', link: /^\/delivery\/pools\/[^?]/ },
  { name: 'dynamic-pools', path: '/delivery/dynamic-pools' },
  { name: 'warm-ups', path: '/delivery/warmups' },
  { name: 'relays', path: '/delivery/relays' },
  { name: 'domains', path: '/domains' },
  { name: 'domain', path: DOMAIN },
  { name: 'domain-health', path: `${DOMAIN}/health` },
  { name: 'domain-settings', path: `${DOMAIN}/settings` },
  { name: 'domain-keys', path: `${DOMAIN}/keys` },
  { name: 'domain-logins', path: `${DOMAIN}/logins` },
  { name: 'domain-receivers', path: `${DOMAIN}/receivers` },
  { name: 'webhooks', path: '/webhooks?domain=shop.example.com' },
  { name: 'attempts', path: '/webhooks/attempts' },
  { name: 'attempt', path: '/webhooks/attempts?status=failing', link: /^\/webhooks\/attempts\/[^?]/ },
  { name: 'routes', path: '/routes' },
  { name: 'settings', path: '/settings' },
  { name: 'api-keys', path: '/settings/keys' },
  { name: 'api-key-calls', path: '/settings/keys', link: /^\/settings\/keys\// },
  { name: 'users', path: '/settings/users' },
  { name: 'subaccounts', path: '/settings/subaccounts' },
  { name: 'subaccount', path: '/settings/subaccounts', link: /^\/settings\/subaccounts\/[^?]/ },
  { name: 'limits', path: '/settings/limits' },
  { name: 'allowed-addresses', path: '/settings/addresses' },
  { name: 'alerts', path: '/settings/alerts?view=alerts' },
  { name: 'retention', path: '/settings/retention' },
  { name: 'profile', path: '/settings', open: asUser, captured: true },
  { name: 'system', path: '/settings/system' },
  { name: 'api-reference', path: '/docs' },
  { name: 'api-operation', path: '/docs/sendMessage' },
  { name: 'guides', path: '/docs/guides' },
  { name: 'guide', path: '/docs/guides', link: /^\/docs\/guides\/[^?]/ },
]
