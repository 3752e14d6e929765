// By name: it judges each of its pages twice.
/** A quarter of the dashboard's pages for those who see, hear or move less: see test/support/page-access.ts. */
import { accessTest } from '../support/page-access.ts'

accessTest({ index: 3, of: 4 })
