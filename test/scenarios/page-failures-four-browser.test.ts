// By name: it opens each of its pages twice.
/** A quarter of the dashboard's pages while their data cannot be had: see test/support/page-failures.ts. */
import { failuresTests } from '../support/page-failures.ts'

failuresTests({ index: 3, of: 4 })
