import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { may, mayChange, PERMISSIONS, ROLES } from './role.ts'

describe('a role', () => {
  it('of an owner may do everything, and every other less', () => {
    assert.deepEqual(
      ROLES.map((role) => PERMISSIONS.filter((permission) => may(role, permission)).length),
      [8, 7, 4, 3, 2],
    )
  })

  it('lets every member see the workspace, and nobody but owners and admins manage it or its members', () => {
    const those = (permission: (typeof PERMISSIONS)[number]) => ROLES.filter((role) => may(role, permission))
    assert.deepEqual(those('workspace.read'), ROLES)
    assert.deepEqual(those('workspace.manage'), ['owner', 'admin'])
    assert.deepEqual(those('members.manage'), ['owner', 'admin'])
    assert.deepEqual(those('owners.manage'), ['owner'])
    assert.deepEqual(those('keys.manage'), ['owner', 'admin', 'developer'])
    assert.deepEqual(those('billing.manage'), ['owner', 'admin', 'billing'])
  })

  it('lets nobody but an owner make, demote or remove an owner', () => {
    for (const actor of ROLES) {
      const isOwner = actor === 'owner'
      assert.equal(mayChange(actor, 'owner', null), isOwner)
      assert.equal(mayChange(actor, 'owner', 'viewer'), isOwner)
      assert.equal(mayChange(actor, 'viewer', 'owner'), isOwner)
      assert.equal(mayChange(actor, null, 'owner'), isOwner)
      assert.equal(mayChange(actor, null, 'admin'), isOwner || actor === 'admin')
      assert.equal(mayChange(actor, 'admin', null), isOwner || actor === 'admin')
    }
  })
})
