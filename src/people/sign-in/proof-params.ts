/** Passwords, codes and tokens as parameters: of the body alone, as addresses are logged and kept in histories. */
import { type Input, parsedParam } from '../../platform/http/request/inputs.ts'

export function secretParam(description: string, about: { required: true }): Input<string>
export function secretParam(description: string): Input<string | undefined>
export function secretParam(description: string, about: { required?: true } = {}): Input<string | undefined> {
  return parsedParam(description, (params, name) => params.bodyText(name), { in: 'form', ...about })
}

export const NEW_PASSWORD = secretParam('12 to 256 characters', { required: true })
export const TOKEN = secretParam('Of the link', { required: true })
