/** The answer of the checks of a message (own-operations.md section 14). */
import { either, flag, list, map, named, nothingNull, number, oneOf, text } from '../../base/shape.ts'

const STATES = ['ok', 'warning', 'failed'] as const

const CHECK = named('MessageCheck', 'One check of a message', {
  name: text('Name', { example: 'spf' }),
  state: oneOf('Result', STATES),
  sentence: text('What is so, and what to change'),
  figures: map(
    'What the sentence is about, by name',
    either(
      'A figure',
      text(''),
      number(''),
      flag(''),
      nothingNull(''),
      list('', text('')),
      map('', list('', text(''))),
    ),
  ),
})

export const MESSAGE_CHECK = named('MessageChecks', 'The checks of a message', {
  state: oneOf('The worst of the checks', STATES),
  checks: list('In the order of acceptance, authentication, content, spam', CHECK),
})
