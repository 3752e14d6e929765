/**
 * The user of a session, and proof of it: an unattended browser must not be enough for a change of how one signs in. A
 * sign-in, a password or a passkey counts for PROOF_MS (decision 232).
 */
import { BadRequest, Forbidden } from '../../base/process/errors.ts'
import { constant, object, optional, text } from '../../base/shape.ts'
import type { Context } from '../../platform/http/operation.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { User, UserDirectory } from '../accounts/user-directory.ts'
import type { Passkeys } from '../sign-in/passkeys/passkeys.ts'
import type { GivenProof, PasswordSignIn } from '../sign-in/password-sign-in.ts'
import { secretParam } from '../sign-in/proof-params.ts'
import type { Sessions } from '../sign-in/sessions.ts'

export const PATH = '/sendwright/v1/me'
export const ERRORS = { 404: 'The user belongs to another account' } as const
/** Errors of operations that need proof. */
export const PROOF_ERRORS = {
  ...ERRORS,
  400: object('Refused', {
    message: text('What is wrong'),
    proof_required: optional(
      constant('Show who you are (POST `/me/proof`), and call again; else absent', true),
    ),
  }),
} as const
export const PROOF = {
  current_password: secretParam('The current password; not needed within ten minutes of the last proof'),
  code: secretParam(
    'With the password: of the authenticator app, or a recovery code; required if the user has a second factor',
  ),
}

interface ProofContext extends Pick<Context<never, Caller>, 'caller' | 'remoteAddress'> {
  input(): { current_password: string | undefined; code: string | undefined; passkey?: string | undefined }
}

export type OwnUsers = ReturnType<typeof createOwnUsers>

interface OwnUserParts {
  userDirectory: UserDirectory
  passwordSignIn: PasswordSignIn
  passkeys: Passkeys
  sessions: Pick<Sessions, 'isProved' | 'noteProof'>
}

export function createOwnUsers({ userDirectory, passwordSignIn, passkeys, sessions }: OwnUserParts) {
  /** @throws Forbidden unless the caller is a session of a user, NotFound when acting for another account */
  async function read({ kind, accountId, userId }: Caller): Promise<User> {
    if (kind !== 'session' || userId === undefined) throw new Forbidden('Incompatible key for this endpoint')
    return userDirectory.read(accountId, userId)
  }

  async function checkPassword(user: User, { password, code }: GivenProof, address: string): Promise<void> {
    if (user.auth_method === 'oidc') throw withoutPassword()
    await passwordSignIn.prove(user, { password, code }, address)
  }

  /** @throws BadRequest for a wrong or missing proof */
  async function prove({ caller, remoteAddress, input }: ProofContext): Promise<User> {
    const user = await read(caller)
    const { current_password: password, code, passkey } = input()
    if (passkey !== undefined) {
      if (!(await passkeys.check(user, passkey, 'prove')))
        throw new BadRequest('The passkey was not accepted')
    } else if (password === undefined) {
      const text = 'Missing mandatory parameter: current_password'
      throw new BadRequest(text, { extra: { proof_required: true } })
    } else await checkPassword(user, { password, code }, remoteAddress)
    await sessions.noteProof(caller.keyId)
    return user
  }

  /** @throws BadRequest for a wrong proof, and without one where the last is too old */
  async function proven(context: ProofContext): Promise<User> {
    const isGiven = context.input().current_password !== undefined
    if (!isGiven && (await sessions.isProved(context.caller.keyId))) return read(context.caller)
    return prove(context)
  }

  return {
    read,
    proven,
    /** The same for a user with a password. @throws BadRequest for a user of the provider */
    async provenWithPassword(context: ProofContext): Promise<User> {
      const { auth_method: method } = await read(context.caller)
      if (method === 'oidc') throw withoutPassword()
      return proven(context)
    },
    prove,
  }
}

const withoutPassword = () => new BadRequest('You have no password here: you sign in with single sign-on')
