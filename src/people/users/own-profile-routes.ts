/** The own user: its name, how it reads dates, and its sessions (own-operations.md section 7). */
import { BadRequest } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { givenParam, textParam } from '../../platform/http/request/inputs.ts'
import type { UserRole } from '../../platform/http/rights/rights.ts'
import { SESSIONS } from '../accounts/shapes.ts'
import type { User } from '../accounts/user-directory.ts'
import type { SecondFactor } from '../sign-in/second-factor.ts'
import { sessionsView } from '../sign-in/session-routes.ts'
import type { Sessions } from '../sign-in/sessions.ts'
import { ERRORS, type OwnUsers, PATH } from './own-user.ts'
import { PROFILE } from './shapes.ts'
import type { Users } from './users.ts'

const api = operationsOf({ tag: 'Users', auth: { area: 'own-user', only: 'user-session' } })

interface OwnProfileRouteParts {
  users: Users
  secondFactor: SecondFactor
  sessions: Sessions
  ownUsers: OwnUsers
}

export function ownProfileRoutes(parts: OwnProfileRouteParts): Operation[] {
  const { users, secondFactor, sessions, ownUsers } = parts

  const profileOf = async (user: User) => ({
    id: user.id,
    email: user.email,
    name: user.name,
    role: user.role as UserRole,
    sign_in: user.auth_method === 'oidc' ? ('oidc' as const) : ('password' as const),
    password_updated_at: time(user.password_updated_at),
    totp_created_at: time(user.totp_created_at),
    passkeys: user.passkeys,
    recovery_codes_left: await secondFactor.codesLeft(user.id),
    language: user.language,
    time_zone: user.time_zone,
  })

  return [
    api.get(PATH, {
      id: 'readOwnProfile',
      summary: 'The own user, and how it signs in',
      answers: { 200: PROFILE, ...ERRORS },
      handler: async ({ caller }) => profileOf(await ownUsers.read(caller)),
    }),
    api.put(PATH, {
      id: 'changeOwnProfile',
      audit: { action: 'own-profile.change', given: ['language', 'time_zone'] },
      summary: 'Change the own name, and how the dashboard writes dates',
      params: {
        name: textParam('Shown in lists'),
        language: givenParam('Of dates, such as `en-GB` (BCP 47); empty: English'),
        time_zone: givenParam('Of dates, such as `Europe/Berlin`; empty: as the browser has it'),
      },
      answers: { 200: PROFILE, ...ERRORS },
      async handler({ input, caller }) {
        const user = await ownUsers.read(caller)
        const { name, language, time_zone: timeZone } = input()
        checkDates(language, timeZone)
        return profileOf(await users.changeProfile(user, { name, language, timeZone }))
      },
    }),
    api.get(`${PATH}/sessions`, {
      id: 'listOwnSessions',
      summary: 'List the browser sessions of the user, newest first',
      answers: { 200: SESSIONS, ...ERRORS },
      async handler({ caller }) {
        const { id, account_id } = await ownUsers.read(caller)
        const rows = (await sessions.list(account_id)).filter(({ user_id }) => user_id === id)
        return sessionsView(rows, caller)
      },
    }),
    api.delete(`${PATH}/sessions/{session_id}`, {
      id: 'endOwnSession',
      audit: { action: 'own-session.end' },
      summary: 'End one browser session of the user',
      answers: { 200: message('Session has been ended') },
      async handler({ path, caller }) {
        const { id, account_id } = await ownUsers.read(caller)
        await sessions.end(account_id, path.session_id, id)
        return { message: 'Session has been ended' }
      },
    }),
  ]
}

const time = (ms: number | null) => (ms === null ? null : formatRfc3339(new Date(ms)))

/** @throws BadRequest for what browsers may not know */
function checkDates(language: string | undefined, timeZone: string | undefined): void {
  if (language && !isFormat(language, undefined))
    throw new BadRequest(`Unknown language "${language.slice(0, 40)}"`)
  if (timeZone && !isFormat(undefined, timeZone))
    throw new BadRequest(`Unknown time zone "${timeZone.slice(0, 60)}"`)
}

const NAME_MAX = 64

function isFormat(language: string | undefined, timeZone: string | undefined): boolean {
  if ((language ?? timeZone ?? '').length > NAME_MAX) return false
  try {
    new Intl.DateTimeFormat(language, { timeZone })
    return language === undefined || Intl.DateTimeFormat.supportedLocalesOf([language]).length === 1
  } catch {
    return false
  }
}
