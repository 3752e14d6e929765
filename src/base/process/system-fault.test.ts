import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { userInfo } from 'node:os'
import { test } from 'node:test'
import { systemFault } from './system-fault.ts'

const faultOf = (action: () => unknown): unknown => {
  try {
    return action()
  } catch (error) {
    return error
  }
}

test('errors of the system say what could not be done, where and why; others are no faults of it', () => {
  for (const [action, sentence] of [
    [() => readFileSync('/nope'), 'Cannot open "/nope": no such file or directory (ENOENT).'],
    [() => readFileSync('/'), 'Cannot read: illegal operation on a directory (EISDIR).'],
    [() => readdirSync('/dev/null'), 'Cannot read the folder "/dev/null": not a directory (ENOTDIR).'],
    [
      () => renameSync('/nope', '/nope2'),
      'Cannot rename "/nope" "/nope2": no such file or directory (ENOENT).',
    ],
    [() => mkdirSync('/dev/null/x'), 'Cannot create the folder "/dev/null/x": not a directory (ENOTDIR).'],
  ] as const)
    assert.equal(systemFault(faultOf(action)), sentence)
  const denied = Object.assign(new Error("EACCES: permission denied, mkdir '/x'"), {
    ...{ code: 'EACCES', syscall: 'mkdir', path: '/x' },
  })
  assert.equal(
    systemFault(denied),
    `Cannot create the folder "/x" as user ${userInfo().username}: permission denied (EACCES).`,
  )
  for (const error of [new Error('x'), new TypeError('x'), 'x', null]) assert.equal(systemFault(error), null)
})
