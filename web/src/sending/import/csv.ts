/** CSV as RFC 4180 §2 has it, also with bare line feeds and a byte order mark. */

/** Spreadsheets run a cell that begins like this as a formula, whether it is quoted or not. */
const FORMULA = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/
const GUARDED = /^'[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/

/** Rows of fields, without the apostrophe that `csvLine` puts before formulas; empty lines are left out. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let field = ''
  let isQuoted = false
  const endField = () => {
    row.push(GUARDED.test(field) ? field.slice(1) : field)
    field = ''
  }
  const endRow = () => {
    endField()
    if (row.length > 1 || row[0] !== '') rows.push(row)
    row = []
  }
  const source = text.startsWith('\ufeff') ? text.slice(1) : text
  for (let at = 0; at < source.length; at += 1) {
    const character = source[at]
    if (isQuoted) {
      if (character !== '"') field += character
      else if (source[at + 1] === '"') {
        field += '"'
        at += 1
      } else isQuoted = false
    } else if (character === '"' && field === '') isQuoted = true
    else if (character === ',') endField()
    else if (character === '\n') endRow()
    else if (character !== '\r' || source[at + 1] !== '\n') field += character
  }
  if (field !== '' || row.length > 0) endRow()
  return rows
}

/** One line, with quotes where a field needs them; a text that would be a formula gets an apostrophe in front. */
export const csvLine = (fields: readonly string[]) => `${fields.map(written).join(',')}\r\n`

function written(field: string): string {
  const safe = FORMULA.test(field) ? `'${field}` : field
  return /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
