/** Passwords, codes and tokens as parameters: of the body alone, as addresses are logged and kept in histories. */
import { BadRequest } from '../../base/errors.ts'
import type { Params } from '../../http/params.ts'
import type { GivenProof } from './password-sign-in.ts'

export const PASSWORD = {
  name: 'password',
  type: 'string',
  required: true,
  description: '12 to 256 characters',
} as const

export const CODE = {
  name: 'code',
  type: 'string',
  required: true,
  description: 'Of the authenticator app, or a recovery code',
} as const

export const TOKEN = { name: 'token', type: 'string', required: true, description: 'Of the link' } as const

/** @throws BadRequest */
export function secretOf(params: Params, name: string): string {
  const value = params.bodyText(name)
  if (value === undefined) throw new BadRequest(`Missing mandatory parameter: ${name}`)
  return value
}

/** @throws BadRequest */
export const proofOf = (params: Params, passwordName: string): GivenProof => ({
  password: secretOf(params, passwordName),
  code: params.bodyText('code'),
})
