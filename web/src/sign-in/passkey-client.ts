/**
 * Passkeys in the browser (WebAuthn). The library is loaded when somebody uses one: browsers differ in how they take and
 * return the binary parts.
 */
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/browser'
import type * as Api from '../api-types.ts'
import { PASSKEY_TEXT as TEXT } from './text.ts'

export const hasPasskeys = () => typeof window.PublicKeyCredential === 'function'

/** What the service wants to see of a passkey. @throws Error with a sentence for the person */
export async function askPasskey(options: Api.PasskeyRequest): Promise<string> {
  const { startAuthentication } = await import('@simplewebauthn/browser')
  // The same document, which the service describes with wider types.
  const optionsJSON = options as PublicKeyCredentialRequestOptionsJSON
  return JSON.stringify(await startAuthentication({ optionsJSON }).catch(inWords))
}

/** A new passkey. @throws Error with a sentence for the person */
export async function makePasskey(options: Api.PasskeyCreation): Promise<string> {
  const { startRegistration } = await import('@simplewebauthn/browser')
  const optionsJSON = options as PublicKeyCredentialCreationOptionsJSON
  return JSON.stringify(await startRegistration({ optionsJSON }).catch(inWords))
}

/** Names of errors: WebAuthn §5.1.3 and §5.1.4. */
function inWords(cause: unknown): never {
  const name = cause instanceof Error ? cause.name : ''
  if (name === 'InvalidStateError') throw new Error(TEXT.alreadyThere, { cause })
  if (name === 'SecurityError') throw new Error(TEXT.wrongHost, { cause })
  throw new Error(TEXT.cancelled, { cause })
}
