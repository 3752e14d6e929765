import { section as activity } from './activity/section.ts'
import { section as delivery } from './delivery/section.ts'
import { section as domains } from './domains/section.ts'
import { section as inbox } from './inbox/section.ts'
import { section as overview } from './overview/section.ts'
import { section as reference } from './reference/section.ts'
import { section as routes } from './routes/section.ts'
import type { Section } from './section.ts'
import { section as sending } from './sending/section.ts'
import { may, type Session } from './session.ts'
import { section as settings } from './settings/section.ts'
import { section as statistics } from './statistics/section.ts'
import { section as webhooks } from './webhooks/section.ts'

/** All sections in the order of the navigation. A new one is one line here (docs/dashboard.md). */
export const SECTIONS = [
  overview,
  inbox,
  activity,
  statistics,
  sending,
  delivery,
  domains,
  webhooks,
  routes,
  settings,
  reference,
] as const

/** Paths of the pages that need no session: what they show is open to everybody. */
const OPEN_PATH = /^\/docs(?:\/|$)/
export const isOpenPath = (pathname: string): boolean => OPEN_PATH.test(pathname)

/** Sections that the caller may open in this delivery mode. */
export const sectionsFor = (session: Session, mode: string | undefined): readonly Section[] =>
  (SECTIONS as readonly Section[]).filter(
    (each) => may(session, each.need) && (each.mode === undefined || each.mode === mode),
  )
