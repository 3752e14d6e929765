/** Passkeys of the own user, and proof of it (own-operations.md section 7). */
import { BadRequest } from '../../base/process/errors.ts'
import { described, list, message, nullable, object, text } from '../../base/shape.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { textParam } from '../../platform/http/request/inputs.ts'
import type { Passkeys } from '../sign-in/passkeys/passkeys.ts'
import {
  CREATION_OPTIONS,
  PASSKEY,
  passkeyResponse,
  passkeyView,
  REQUEST_OPTIONS,
} from '../sign-in/passkeys/shapes.ts'
import { ERRORS, type OwnUsers, PATH, PROOF, PROOF_ERRORS } from './own-user.ts'
import type { Users } from './users.ts'

const api = operationsOf({ tag: 'Users', auth: { area: 'own-user', only: 'user-session' } })

interface OwnPasskeyRouteParts {
  users: Pick<Users, 'notify'>
  passkeys: Passkeys
  ownUsers: OwnUsers
}

export function ownPasskeyRoutes({ users, passkeys, ownUsers }: OwnPasskeyRouteParts): Operation[] {
  return [
    api.get(`${PATH}/passkeys`, {
      id: 'listPasskeys',
      summary: 'List the passkeys of the user, oldest first',
      answers: {
        200: object('Passkeys', {
          origin: nullable(text('Of the pages where they work; null: the public URL allows none')),
          items: list('Oldest first', PASSKEY),
        }),
        ...ERRORS,
      },
      async handler({ caller }) {
        const rows = await passkeys.list((await ownUsers.read(caller)).id)
        return { origin: passkeys.origin, items: rows.map(passkeyView) }
      },
    }),
    api.post(`${PATH}/passkeys/options`, {
      id: 'beginPasskey',
      audit: { exempt: 'changes nothing' },
      summary: 'Begin to add a passkey',
      params: PROOF,
      answers: { 200: CREATION_OPTIONS, ...PROOF_ERRORS },
      handler: async (context) => passkeys.beginAdding(await ownUsers.proven(context)),
    }),
    api.post(`${PATH}/passkeys`, {
      id: 'addPasskey',
      audit: { action: 'own-passkey.add', given: ['name'], made: ['passkey.id'] },
      summary: 'Add the passkey that the browser has made',
      params: {
        name: textParam('As its owner calls it', { required: true }),
        passkey: passkeyResponse('RegistrationResponseJSON of the browser (WebAuthn §5.1)'),
      },
      answers: {
        200: object('Added', {
          passkey: PASSKEY,
          recovery_codes: nullable(
            list('Shown once; null: there is another second factor already', text('Code')),
          ),
        }),
        ...ERRORS,
      },
      async handler({ input, caller }) {
        const user = await ownUsers.read(caller)
        const { name, passkey: response } = input()
        if (response === undefined) throw new BadRequest('Missing mandatory parameter: passkey')
        const { passkey, recoveryCodes } = await passkeys.add(user, name, response)
        await users.notify(user, 'passkeyAdded')
        return { passkey: passkeyView(passkey), recovery_codes: recoveryCodes }
      },
    }),
    api.put(`${PATH}/passkeys/{passkey_id}`, {
      id: 'renamePasskey',
      audit: { action: 'own-passkey.rename', given: ['name'] },
      summary: 'Rename a passkey',
      params: { name: textParam('As its owner calls it', { required: true }) },
      answers: { 200: PASSKEY },
      async handler({ input, path, caller }) {
        const { id } = await ownUsers.read(caller)
        return passkeyView(await passkeys.rename(id, path.passkey_id, input().name))
      },
    }),
    api.delete(`${PATH}/passkeys/{passkey_id}`, {
      id: 'removePasskey',
      audit: { action: 'own-passkey.remove' },
      summary: 'Remove a passkey',
      params: PROOF,
      answers: { 200: message('The passkey has been removed'), ...PROOF_ERRORS },
      async handler(context) {
        const user = await ownUsers.proven(context)
        await passkeys.remove(user.id, context.path.passkey_id)
        await users.notify(user, 'passkeyRemoved')
        return { message: 'The passkey has been removed' }
      },
    }),
  ]
}

export function proofRoutes({ passkeys, ownUsers }: Omit<OwnPasskeyRouteParts, 'users'>): Operation[] {
  return [
    api.post(`${PATH}/proof/options`, {
      id: 'beginProof',
      audit: { exempt: 'changes nothing' },
      summary: 'Begin to show again who one is, with a passkey',
      answers: {
        200: object('Options', {
          passkey: nullable(
            described('What the browser asks for; null: there is no passkey', REQUEST_OPTIONS),
          ),
        }),
        ...ERRORS,
      },
      handler: async ({ caller }) => ({
        passkey: await passkeys.beginFor(await ownUsers.read(caller), 'prove'),
      }),
    }),
    api.post(`${PATH}/proof`, {
      id: 'proveOwnUser',
      audit: { action: 'own-user.prove' },
      summary: 'Show again who one is: sensitive changes are allowed for ten minutes',
      params: { ...PROOF, passkey: passkeyResponse('In place of the password: what the browser returned') },
      answers: { 200: message('Thank you'), ...PROOF_ERRORS },
      async handler(context) {
        await ownUsers.prove(context)
        return { message: 'Thank you' }
      },
    }),
  ]
}
