// All tests that need the cluster, in one process, so that it starts once.

import { after, before } from 'node:test'

import { startCluster, stopCluster } from './support.js'
import './cluster.js'
import './contract.js'
import './fetch.js'
import './package.js'
import './readme.js'
import './retry.js'

before(startCluster)
after(stopCluster)
