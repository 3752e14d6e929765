import { classifyAddress } from '../../base/net/ip.ts'
import { SECOND_MS } from '../../base/time/durations.ts'
import type { Config } from '../../platform/config/config.ts'
import { type SessionParts, SMTP_LIMITS } from './session.ts'

/** What the settings say of SMTP sessions, of nodes and of a front alike. `scheduleMaxMs`: how far ahead mail may be scheduled. */
export const sessionSettings = (
  config: Config,
  scheduleMaxMs: number,
): Pick<SessionParts, 'hostname' | 'limits' | 'authWithoutTls'> => ({
  hostname: config.hostname,
  limits: {
    ...SMTP_LIMITS,
    messagesMax: config.smtpMessagesPerConnectionMax,
    idleMs: config.smtpIdleMs,
    holdMaxMs: Math.max(scheduleMaxMs, config.maxMessageTtlSeconds * SECOND_MS),
  },
  authWithoutTls: (address) =>
    config.smtpAuthWithoutTls === 'anyone' ||
    (config.smtpAuthWithoutTls === 'loopback' && classifyAddress(address) === 'loopback'),
})
