/** CSV as RFC 4180 §2 has it, also with bare line feeds and a byte order mark. */

/** Rows of fields; empty lines are left out. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let field = ''
  let isQuoted = false
  const endField = () => {
    row.push(field)
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

/** One line, with quotes where a field needs them. */
export const csvLine = (fields: readonly string[]): string =>
  `${fields.map((field) => (/[",\r\n]|^\s|\s$/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(',')}\r\n`
