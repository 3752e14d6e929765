/** Texts of the pages before a session. */
export const TEXT = {
  title: 'Sign in',
  linkBefore: 'Starting',
  linkAfter: 'prints a link that signs you in once. To get another one, run this on the same machine:',
  email: 'Email address',
  password: 'Password',
  code: 'Code',
  codeWhy: 'Of your authenticator app, or one of your recovery codes.',
  passkeyInstead: 'Use a passkey instead',
  forgot: 'Forgot your password?',
  tooMany: (minutes: number) => `Too many wrong passwords from your network. Try again in ${minutes} min.`,
  provider: (name: string) => `Sign in with ${name}`,
  or: 'or',
  key: 'Or sign in with an API key',
  keyWhy: 'The key is exchanged for a session; the page does not keep it.',
  keyRefused: 'This key is not accepted.',
  withKey: 'Sign in with the key',
  linkSent: (sentence: string) => `${sentence}. It works for an hour.`,
  sendLink: 'Send the link',
  back: 'Back to signing in',
  welcome: 'Welcome: choose a password',
  choose: 'Choose a new password',
  changed: 'Your password was changed. Sign in with it.',
  newPassword: 'New password',
  newPasswordWhy: 'At least 12 characters. A few words that do not belong together are easy to keep in mind.',
  set: 'Set the password',
  toSignIn: 'To the sign-in page',
} as const

/** About passkeys, before and in a session. */
export const PASSKEY_TEXT = {
  signIn: 'Sign in with a passkey',
  alreadyThere: 'This device has a passkey of yours already.',
  wrongHost: 'Passkeys work only under the public address of this service.',
  cancelled: 'No passkey was used: the browser asked in vain, or you have cancelled it.',
} as const
