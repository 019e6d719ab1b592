import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** Arrays, maps, threads and much garbage: prints what must be the same wherever the memory is from. */
public class Sorted {
    public static void main(String[] arguments) throws Exception {
        Random random = new Random(5);
        long sum = 0;
        for (int round = 0; round < 4; round++) {
            long[] numbers = random.longs(2_000_000).toArray();
            Arrays.parallelSort(numbers);
            sum = sum * 31 + Arrays.hashCode(numbers);
        }
        System.out.println(sum);
        Map<String, ArrayList<Integer>> map = new HashMap<>();
        for (int i = 0; i < 500_000; i++)
            map.computeIfAbsent("key " + random.nextInt(100_000), key -> new ArrayList<>()).add(i);
        System.out.println(map.size() + " " + map.hashCode());
        long[] sums = new long[4];
        Thread[] threads = new Thread[4];
        for (int i = 0; i < 4; i++) {
            int own = i;
            threads[i] = new Thread(() -> {
                for (int round = 0; round < 50; round++) {
                    byte[] bytes = new byte[1 << 20];
                    new Random(own * 1000 + round).nextBytes(bytes);
                    sums[own] = sums[own] * 31 + Arrays.hashCode(bytes);
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads)
            thread.join();
        System.out.println(Arrays.toString(sums));
        java.nio.ByteBuffer direct = java.nio.ByteBuffer.allocateDirect(64 << 20);
        for (int i = 0; i < direct.capacity(); i += 8)
            direct.putLong(i, i * 0x9e3779b97f4a7c15L);
        System.out.println(direct.hashCode());
        Process child = new ProcessBuilder("/bin/echo", "from a child").start();
        System.out.println(new String(child.getInputStream().readAllBytes()) + child.waitFor());
    }
}
