import type { Entry } from '../entry.ts'
import { columnName } from '../input-file.ts'
import { columnsOf, type ShapeContext, textIn } from './shape.ts'

/** Columns that are not variables of a member: its address, its name, and numbers of the other service. */
const OWN_COLUMNS = new Set(['email', 'emailaddress', 'firstname', 'lastname', 'contactid', 'id'])

/** A row of contacts as a member of the list that the caller named; nothing without one. */
export function contactEntries(
  row: Record<string, unknown>,
  address: string,
  {
    list,
    subscribed,
    leftOut = [],
  }: Pick<ShapeContext, 'list'> & { subscribed: boolean; leftOut?: string[] },
): Entry[] {
  if (list === null) return []
  const columns = columnsOf(row)
  const name = [
    textIn(columns, 'firstname', 'prenom', 'vorname'),
    textIn(columns, 'lastname', 'nom', 'nachname'),
  ]
  const vars = Object.entries(row).filter(([column, text]) => {
    const short = columnName(column)
    return text !== '' && !OWN_COLUMNS.has(short) && !leftOut.includes(short)
  })
  return [
    {
      kind: 'member',
      list,
      address,
      name: name.filter((part) => part !== '').join(' '),
      vars: Object.fromEntries(vars),
      subscribed,
    },
  ]
}
