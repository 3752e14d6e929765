/** Mail that the service sends to users. Links have their token after `#`: no request, log or Referer contains it. */
import type { Statement } from '../../platform/store/store.ts'

/**
 * Accepts a message of the service itself, in one transaction with the statements that it is about. Several recipients
 * see each other's addresses.
 * @throws as sending does, and StaleWrite when a statement does; then nothing was stored
 */
export type SystemMail = (
  mail: { to: string | readonly string[]; subject: string; text: string },
  statements: readonly Statement[],
) => Promise<void>

export const invitationMail = (to: string, url: string, days: number) => ({
  to,
  subject: 'Your invitation to Sendwright',
  text: `You have been invited to the dashboard of an email sending service.

Open this link to choose a password. It works once, for ${days} days:

${url}

If you do not know what this is about, ignore this message.
`,
})

export const resetMail = (to: string, url: string, minutes: number) => ({
  to,
  subject: 'Reset your Sendwright password',
  text: `Somebody, probably you, has asked for a new password for this address.

Open this link to choose one. It works once, for ${minutes} minutes:

${url}

If it was not you, ignore this message: your password stays as it is.
`,
})

/** Sent after each change, so that the owner learns of a change by somebody else. */
export const passwordChangedMail = (to: string, url: string) => ({
  to,
  subject: 'Your Sendwright password was changed',
  text: `The password for this address was changed, and all sessions of it have ended.

If it was not you, ask for a new password now and tell an administrator:

${url}
`,
})

export const passwordAllowedMail = (to: string, url: string, days: number) => ({
  to,
  subject: 'Choose a Sendwright password',
  text: `From now on you sign in to the dashboard with a password, instead of your organisation's account.

Open this link to choose one. It works once, for ${days} days:

${url}
`,
})

/** Sent when a user who had a password signs in with the provider for the first time. */
export const providerLinkedMail = (to: string, url: string, label: string) => ({
  to,
  subject: 'Your Sendwright sign-in was changed',
  text: `Somebody, probably you, has signed in with this address through ${label}. From now on this is the only way to sign in;
the password and the authenticator app were removed, and all other sessions have ended.

If it was not you, tell an administrator now:

${url}
`,
})

const CHANGES = {
  passkeyAdded: 'A passkey was added. It can be used to sign in.',
  passkeyRemoved: 'A passkey was removed.',
  appAdded: 'An authenticator app was added. From now on a code is asked for after the password.',
  appRemoved: 'The authenticator app was removed.',
  codesRenewed: 'New recovery codes were made. The older ones are void.',
  secondFactorReset:
    'An administrator has removed the authenticator app, all passkeys and the recovery codes.',
} as const

export type SignInChange = keyof typeof CHANGES

/** Sent after each change of a second factor or passkey, so that the owner learns of a change by somebody else. */
export const signInChangedMail = (to: string, url: string, change: SignInChange) => ({
  to,
  subject: 'Your Sendwright sign-in was changed',
  text: `${CHANGES[change]}

If you did not expect this, change your password now, look at your profile and tell an administrator:

${url}
`,
})
