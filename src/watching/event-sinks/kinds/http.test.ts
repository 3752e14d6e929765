import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bulkFault } from './http.ts'

const item = (status: number, more: object = {}) => ({
  create: { _index: 'mail', _id: 'a', status, ...more },
})
const error = { type: 'document_parsing_exception', reason: '[1:9] failed to parse field [ip]' }

test('a bulk request counts as taken only if each document was, or was there before', () => {
  const answer = (...items: object[]) => JSON.stringify({ took: 3, errors: true, items })
  const taken = [
    [JSON.stringify({ took: 3, errors: false, items: [item(201)] }), 1],
    // A repeat: what was there already is left alone.
    [answer(item(201), item(409, { error: { type: 'version_conflict_engine_exception' } })), 2],
  ] as const
  for (const [text, count] of taken) assert.equal(bulkFault(text, count), null, text)
  const refused = [
    [answer(item(201), item(400, { error })), 2, /document_parsing_exception/],
    // The queue of a shard is full: all come again later.
    [answer(item(429, { error: { type: 'es_rejected_execution_exception' } }), item(201)), 2, /rejected/],
    [answer(item(503)), 1, /503/],
    [answer(item(201)), 2, /does not name all/],
    [answer({ index: { status: 201 } }), 1, /refused/],
    ['{"took":3}', 1, /does not name all/],
    ['[]', 1, /not an object/],
    ['<html>', 1, /not JSON/],
  ] as const
  for (const [text, count, fault] of refused) assert.match(bulkFault(text, count) ?? 'taken', fault, text)
})
