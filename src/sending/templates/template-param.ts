/** Parameters of settings that are one line of text, such as the name of a stored template. */
import { BadRequest } from '../../base/process/errors.ts'
import { invalidChoice } from '../../base/values.ts'
import { parsedParam } from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'

const TEMPLATE_LENGTH_MAX = 255

/** Names a template, or none by an empty text: null. */
export const templateParam = (description: string) =>
  parsedParam(description, (params, name) => {
    const given = line(params, name, TEMPLATE_LENGTH_MAX)
    return given === '' ? null : given
  })

/** One line of text; an empty one clears it. @throws BadRequest */
export function line(params: Params, name: string, lengthMax: number): string | undefined {
  const given = params.given(name)?.trim()
  if (given === undefined) return undefined
  if (given.length > lengthMax) throw new BadRequest(`${name} has more than ${lengthMax} characters`)
  if (/[\u0000-\u001f\u007f]/.test(given)) throw invalidChoice(name, given)
  return given.toWellFormed()
}
