/* The sections of these files, for each of their kinds. */
#include "steps.h"

static void
run_file(const char *name)
{
	size_t n;
	struct section *all = steps_open(name, &n);
	int failed = 0;

	for (size_t i = 0; i < n; i++)
		for (unsigned kind = OF_LIST; kind <= OF_GROUPS; kind <<= 1) {
			if ((all[i].kinds & kind) == 0)
				continue;
			steps_reset(kind);
			failed += steps_run(&all[i], all[i].text, false) != 0;
		}
	steps_reset(OF_LIST);
	steps_close(all, n);
	assert_int_equal(failed, 0);
}

TEST(test_pop)		{ run_file("pop"); }
TEST(test_cancel)	{ run_file("cancel"); }
TEST(test_on_dead)	{ run_file("on_dead"); }
TEST(test_scripts)	{ run_file("scripts"); }
TEST(test_stream)	{ run_file("stream"); }
TEST(test_unique)	{ run_file("unique"); }
TEST(test_groups)	{ run_file("groups"); }
TEST(test_hand_over)	{ run_file("hand_over"); }

int
main(void)
{
	int rc;

	rig_open(&rig, "orders");
	rc = unit_run(NULL, NULL);
	rig_close(&rig);
	return rc;
}
