// By name: it judges each of its pages twice.
/** Half of the dashboard's pages for those who see, hear or move less: see test/support/page-access.ts. */
import { accessTest } from '../support/page-access.ts'

accessTest(1)
